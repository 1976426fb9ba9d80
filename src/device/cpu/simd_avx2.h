#pragma once

#include <immintrin.h>

#include <cstdint>

namespace latte {
namespace {

/// Eight floats of AVX2 with fused multiply-add; 16 registers.
struct Avx2 {
  using Vec = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kWeightRows[9] = {0, 8, 6, 4, 3};  ///< weight rows of a dot tile, by rows of x
  static constexpr int kRowSumVecs[5] = {0, 8, 4, 2, 2};  ///< column vectors of a row-sum tile, by rows of x
  static constexpr int kScoreKeys[3] = {0, 12, 6};        ///< keys of a score tile, by query vectors
  static constexpr int kValueRows = 4;                    ///< rows of a value tile
  static constexpr int kValueVecs = 3;                    ///< its value vectors
  static constexpr int kGroupVecs = 8;                    ///< query vectors of an attention task

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec set1(float value) { return _mm256_set1_ps(value); }
  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static Vec load(const std::uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vec load_first(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  static Vec load_first(const std::uint16_t* p, int n) {
    std::uint16_t padded[kWidth] = {};
    for (int i = 0; i < n; ++i) padded[i] = p[i];
    return load(padded);
  }
  static Vec load_f16(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Vec load_codes(const std::int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  static void zip(Vec& a, Vec& b) {
    const Vec low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    a = _mm256_permute2f128_ps(low, high, 0x20);
    b = _mm256_permute2f128_ps(low, high, 0x31);
  }
  static void store_first(float* p, Vec v, int n) { _mm256_maskstore_ps(p, first(n), v); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  /// The second operand where either is NaN.
  static Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
  static Vec select_less(Vec a, Vec b, Vec yes, Vec no) {
    return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
  }
  static float hsum(Vec v) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static Vec round(Vec v) { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  /// 2^v for integers v in [-126, 127].
  static Vec power_of_two(Vec v) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(v), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
  }
  static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

 private:
  static __m256i first(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace
}  // namespace latte
