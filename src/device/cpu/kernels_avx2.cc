#include "device/cpu/kernel_table.h"

#if defined(__AVX2__) && defined(__FMA__)
#include "device/cpu/group_dot_avx2.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx2.h"

namespace latte {

const KernelTable* avx2_kernels() {
  static constexpr KernelTable kTable =
      kernel_table<Avx2, FloatDot<Avx2>, Avx2GroupDot>("avx2", dot_loop_of<FmaStep<Avx2, 12>>("vfmadd ymm"),
                                                       dot_loop_of<Avx2ByteStep>("vpmaddubsw, vpmaddwd, vpaddd ymm"));
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::avx2_kernels() { return nullptr; }
#endif
