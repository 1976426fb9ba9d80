#pragma once

#include <cstdint>

#include "device/cpu/group_dot_avx512.h"
#include "device/cpu/kernel_unit.h"
#include "device/cpu/simd_avx512.h"
#include "plan/dot_rate.h"

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

/// The same products over registers alone.
struct PairStep {
  using Sum = Avx512::Vec;
  static constexpr DotType kType = DotType::kBf16;
  static constexpr int kSums = 16;
  static constexpr int kProducts = 32;
  static Sum first(int i) { return Avx512::set1(static_cast<float>(i)); }
  static Sum next(Sum sum) {
    return PairDot::multiply_add(_mm512_set1_epi16(0x3f80), _mm512_set1_epi16(0x3e80), sum);  // 1 and 1/4
  }
  static float total(Sum sum) { return Avx512::hsum(sum); }
};

/// As KernelTable::round_bf16.
inline void round_bf16(const float* x, std::uint16_t* to, std::int64_t n) {
  constexpr int kWidth = Avx512::kWidth;
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const auto some = static_cast<__mmask16>(n - i >= kWidth ? 0xffff : (1u << (n - i)) - 1u);
    const __m256bh halves = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, x + i));
    _mm256_mask_storeu_epi16(to + i, some, reinterpret_cast<__m256i>(halves));
  }
}

/// AVX-512 with the dot instructions of bf16 pairs and of codes.
constexpr KernelTable pair_dot_table(const char* isa, DotLoop loop) {
  KernelTable table = kernel_table<Avx512, PairDot, VnniGroupDot>(isa, loop);
  table.round_bf16 = &round_bf16;
  return table;
}

}  // namespace
}  // namespace latte
