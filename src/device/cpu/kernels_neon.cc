#include "device/cpu/kernel_table.h"

#if defined(__ARM_NEON) && defined(__aarch64__)
#include "device/cpu/group_dot.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_neon.h"

namespace latte {

const KernelTable* neon_kernels() {
  static constexpr KernelTable kTable =
      kernel_table<Neon, FloatDot<Neon>, PlainGroupDot<Neon>>("neon", dot_loop_of<FmaStep<Neon, 20>>("fmla"));
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::neon_kernels() { return nullptr; }
#endif
