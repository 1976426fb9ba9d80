#pragma once

#include "device/cpu/simd_avx2.h"
#include "plan/dot_rate.h"
#include "tensor/grouped.h"

namespace latte {
namespace {

/// Eight outputs: products of bytes summed in pairs to 16 bits. Halves of 0..15 leave room there for a whole group
/// (8 * 2 * 15 * 127 < 2^15); magnitudes of at most 127 do not saturate a pair (2 * 127 * 127 < 2^15).
struct Avx2GroupDot {
  using Floats = Avx2;
  using Sums = __m256i;
  static constexpr int kPartBytes = 32;
  static constexpr int kMostRows = 8;
  struct Q8 {
    explicit Q8(__m256i codes) : signs(codes), magnitudes(_mm256_abs_epi8(codes)) {}
    __m256i signs, magnitudes;
  };

  static __m256 fma(__m256 a, __m256 b, __m256 c) { return Floats::fma(a, b, c); }
  static __m256i load(const unsigned char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static __m256i low_halves(__m256i both) { return _mm256_and_si256(both, _mm256_set1_epi8(15)); }
  static __m256i high_halves(__m256i both) {
    return _mm256_and_si256(_mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
  }
  static Sums begin_q4(std::int32_t) { return _mm256_setzero_si256(); }
  static Sums begin_q8(std::int32_t) { return _mm256_setzero_si256(); }
  static Sums add_q4(Sums sums, __m256i w, std::int32_t quad) {
    return _mm256_add_epi16(sums, _mm256_maddubs_epi16(w, _mm256_set1_epi32(quad)));
  }
  static Sums add_q8(Sums sums, const Q8& w, std::int32_t quad) {
    const __m256i signed_x = _mm256_sign_epi8(_mm256_set1_epi32(quad), w.signs);
    return _mm256_add_epi32(sums, widen(_mm256_maddubs_epi16(w.magnitudes, signed_x)));
  }
  static void settle(Sums& sums) { asm volatile("" : "+x"(sums)); }
  static __m256 finish_q4(Sums sums, std::int32_t offset) {
    return _mm256_cvtepi32_ps(_mm256_add_epi32(widen(sums), _mm256_set1_epi32(offset)));
  }
  static __m256 finish_q8(Sums sums) { return _mm256_cvtepi32_ps(sums); }

 private:
  static __m256i widen(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
};

/// The same products over registers alone; the sum's own bytes are the unsigned ones.
struct Avx2ByteStep {
  using Sum = __m256i;
  static constexpr DotType kType = DotType::kInt8;
  static constexpr int kSums = 12;
  static constexpr int kProducts = 32;
  static Sum first(int i) { return _mm256_set1_epi32(0x01020304 * (i + 1)); }
  static Sum next(Sum sum) {
    const __m256i pairs = _mm256_maddubs_epi16(sum, _mm256_set1_epi8(3));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    asm volatile("" : "+x"(sum));  // sum after sum, or g++ wants more registers than there are
    return sum;
  }
  static float total(Sum sum) { return Avx2::hsum(_mm256_cvtepi32_ps(sum)); }
};

}  // namespace
}  // namespace latte
