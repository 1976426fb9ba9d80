#pragma once

#include <cstdint>

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

}  // namespace
}  // namespace latte
