#include "device/cpu/kernel_table.h"

#if defined(__AVX512BF16__) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__) && defined(__AVX512VNNI__)
#include "device/cpu/pair_dot.h"

namespace latte {
const KernelTable* avx512_bf16_kernels() {
  static constexpr KernelTable kTable = pair_dot_table("avx512_bf16", dot_loop_of<PairStep>("vdpbf16ps zmm"));
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::avx512_bf16_kernels() { return nullptr; }
#endif
