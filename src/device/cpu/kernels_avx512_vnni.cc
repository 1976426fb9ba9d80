#include "device/cpu/kernel_table.h"

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && \
    defined(__AVX512VNNI__)
#include "device/cpu/group_dot_avx512.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx512.h"

namespace latte {

const KernelTable* avx512_vnni_kernels() {
  static constexpr KernelTable kTable =
      kernel_table<Avx512, FloatDot<Avx512>, VnniGroupDot>("avx512_vnni", dot_loop_of<VnniByteStep>("vpdpbusd zmm"));
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::avx512_vnni_kernels() { return nullptr; }
#endif
