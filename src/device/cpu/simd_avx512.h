#pragma once

// g++ 12 warns inside its own intrinsics, where they pass a deliberately undefined register.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

namespace latte {
namespace {

/// Sixteen floats of AVX-512 (F, BW, DQ, VL); 32 registers.
struct Avx512 {
  using Vec = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kWeightRows[9] = {0, 8, 8, 8, 6, 0, 0, 0, 3};
  static constexpr int kRowSumVecs[5] = {0, 8, 4, 4, 4};
  static constexpr int kScoreKeys[3] = {0, 16, 8};
  static constexpr int kValueRows = 8;
  static constexpr int kValueVecs = 2;
  static constexpr int kGroupVecs = 4;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec set1(float value) { return _mm512_set1_ps(value); }
  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static Vec load(const std::uint16_t* p) { return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static Vec load_first(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static Vec load_first(const std::uint16_t* p, int n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
  static Vec load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Vec load_codes(const std::int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static void zip(Vec& a, Vec& b) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const Vec lower = _mm512_permutex2var_ps(a, low, b);
    b = _mm512_permutex2var_ps(a, _mm512_add_epi32(low, _mm512_set1_epi32(kWidth / 2)), b);
    a = lower;
  }
  static void store_first(float* p, Vec v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  /// The second operand where either is NaN.
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec select_less(Vec a, Vec b, Vec yes, Vec no) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
  }
  static float hsum(Vec v) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Vec round(Vec v) { return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  /// 2^v for integers v in [-126, 127].
  static Vec power_of_two(Vec v) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(v), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
  }
  static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

 private:
  static __mmask16 first(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static Vec widen(__m256i bits) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16)); }
};

}  // namespace
}  // namespace latte
