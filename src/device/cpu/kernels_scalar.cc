#include "device/cpu/group_dot.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_scalar.h"

namespace latte {

const KernelTable* scalar_kernels() {
  static constexpr KernelTable kTable = kernel_table<Scalar, FloatDot<Scalar>, PlainGroupDot<Scalar>>(
      "scalar", dot_loop_of<FmaStep<Scalar, 12>>("a product and a sum of 4 floats"));
  return &kTable;
}

}  // namespace latte
