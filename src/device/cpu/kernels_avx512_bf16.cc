#include "device/cpu/kernel_table.h"

#if defined(__AVX512BF16__) && defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && \
    defined(__AVX512VL__) && defined(__AVX512VNNI__)
#include "device/cpu/group_dot_avx512.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx512.h"

namespace latte {
namespace {

/// Dot products of bf16 pairs: each of 16 lanes sums two neighbours of k per step.
struct PairDot {
  using Vec = Avx512::Vec;
  using Operand = __m512i;
  static constexpr int kStep = 2 * Avx512::kWidth;
  static Operand load(const std::uint16_t* p) { return _mm512_loadu_si512(p); }
  static Operand load_first(const std::uint16_t* p, int n) {
    return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((1ull << n) - 1ull), p);
  }
  static Vec multiply_add(Operand a, Operand b, Vec sum) { return _mm512_dpbf16_ps(sum, as_pairs(a), as_pairs(b)); }

 private:
  static __m512bh as_pairs(__m512i bits) { return reinterpret_cast<__m512bh>(bits); }
};

}  // namespace

const KernelTable* avx512_bf16_kernels() {
  static constexpr KernelTable kTable = kernel_table<Avx512, PairDot, VnniGroupDot>("avx512_bf16");
  return &kTable;
}

}  // namespace latte
#else
const latte::KernelTable* latte::avx512_bf16_kernels() { return nullptr; }
#endif
