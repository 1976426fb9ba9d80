#include "device/cpu/kernel_table.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#include "device/cpu/group_dot_avx512.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx512.h"

namespace latte {

const KernelTable* avx512_kernels() {
  static constexpr KernelTable kTable = kernel_table<Avx512, FloatDot<Avx512>, Avx512GroupDot>(
      "avx512", dot_loop_of<FmaStep<Avx512, 16>>("vfmadd zmm"),
      dot_loop_of<Avx512ByteStep>("vpmaddubsw, vpmaddwd, vpaddd zmm"));
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::avx512_kernels() { return nullptr; }
#endif
