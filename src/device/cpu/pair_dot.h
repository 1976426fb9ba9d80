#pragma once

#include <cstdint>

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
}  // namespace latte
