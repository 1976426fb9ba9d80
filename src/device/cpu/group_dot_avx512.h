#pragma once

#include "device/cpu/kernel_table.h"
#include "device/cpu/simd_avx512.h"
#include "plan/dot_rate.h"

#ifndef LATTE_WIDE_REGISTER  // tests that emulate such registers keep them in memory
#define LATTE_WIDE_REGISTER "v"
#endif

namespace latte {
namespace {

/// Sixteen outputs with AVX-512 BW: as group_dot_avx2.h.
struct Avx512GroupDot {
  using Floats = Avx512;
  using Sums = __m512i;
  static constexpr int kPartBytes = 64;
  static constexpr int kMostRows = 8;
  struct Q8 {
    explicit Q8(__m512i codes) : negative(_mm512_movepi8_mask(codes)), magnitudes(_mm512_abs_epi8(codes)) {}
    __mmask64 negative;
    __m512i magnitudes;
  };

  static __m512 fma(__m512 a, __m512 b, __m512 c) { return Floats::fma(a, b, c); }
  static __m512i load(const unsigned char* p) { return _mm512_loadu_si512(p); }
  static __m512i low_halves(__m512i both) { return _mm512_and_si512(both, _mm512_set1_epi8(15)); }
  static __m512i high_halves(__m512i both) {
    return _mm512_and_si512(_mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
  }
  static Sums begin_q4(std::int32_t) { return _mm512_setzero_si512(); }
  static Sums begin_q8(std::int32_t) { return _mm512_setzero_si512(); }
  static Sums add_q4(Sums sums, __m512i w, std::int32_t quad) {
    return _mm512_add_epi16(sums, _mm512_maddubs_epi16(w, _mm512_set1_epi32(quad)));
  }
  static Sums add_q8(Sums sums, const Q8& w, std::int32_t quad) {
    const __m512i x = _mm512_set1_epi32(quad);
    const __m512i signed_x = _mm512_mask_sub_epi8(x, w.negative, _mm512_setzero_si512(), x);
    return _mm512_add_epi32(sums, widen(_mm512_maddubs_epi16(w.magnitudes, signed_x)));
  }
  static void settle(Sums& sums) { asm volatile("" : "+" LATTE_WIDE_REGISTER(sums)); }
  static __m512 finish_q4(Sums sums, std::int32_t offset) {
    return _mm512_cvtepi32_ps(_mm512_add_epi32(widen(sums), _mm512_set1_epi32(offset)));
  }
  static __m512 finish_q8(Sums sums) { return _mm512_cvtepi32_ps(sums); }

 private:
  static __m512i widen(__m512i pairs) { return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)); }
};

/// The same products over registers alone; the sum's own bytes are the unsigned ones.
struct Avx512ByteStep {
  using Sum = __m512i;
  static constexpr DotType kType = DotType::kInt8;
  static constexpr int kSums = 16;
  static constexpr int kProducts = 64;
  static Sum first(int i) { return _mm512_set1_epi32(0x01020304 * (i + 1)); }
  static Sum next(Sum sum) {
    const __m512i pairs = _mm512_maddubs_epi16(sum, _mm512_set1_epi8(3));
    sum = _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    asm volatile("" : "+" LATTE_WIDE_REGISTER(sum));  // sum after sum, or g++ wants more registers than there are
    return sum;
  }
  static float total(Sum sum) { return Avx512::hsum(_mm512_cvtepi32_ps(sum)); }
};

#if defined(__AVX512VNNI__)
/// Sixteen outputs with VNNI: four products a lane in one instruction, of unsigned weights (Q8: code + kQ8Shift). Sums
/// begin with what that adds too much.
struct VnniGroupDot {
  using Floats = Avx512;
  using Sums = __m512i;
  static constexpr int kPartBytes = 64;
  static constexpr int kMostRows = 16;
  struct Q8 {
    explicit Q8(__m512i codes) : shifted(_mm512_xor_si512(codes, _mm512_set1_epi8(static_cast<char>(kQ8Shift)))) {}
    __m512i shifted;
  };

  static __m512 fma(__m512 a, __m512 b, __m512 c) { return Floats::fma(a, b, c); }
  static __m512i load(const unsigned char* p) { return _mm512_loadu_si512(p); }
  static __m512i low_halves(__m512i both) { return Avx512GroupDot::low_halves(both); }
  static __m512i high_halves(__m512i both) { return Avx512GroupDot::high_halves(both); }
  static Sums begin_q4(std::int32_t offset) { return _mm512_set1_epi32(offset); }
  static Sums begin_q8(std::int32_t offset) { return _mm512_set1_epi32(offset); }
  static Sums add_q4(Sums sums, __m512i w, std::int32_t quad) {
    return _mm512_dpbusd_epi32(sums, w, _mm512_set1_epi32(quad));
  }
  static Sums add_q8(Sums sums, const Q8& w, std::int32_t quad) {
    return _mm512_dpbusd_epi32(sums, w.shifted, _mm512_set1_epi32(quad));
  }
  static void settle(Sums& sums) { asm volatile("" : "+" LATTE_WIDE_REGISTER(sums)); }
  static __m512 finish_q4(Sums sums, std::int32_t) { return _mm512_cvtepi32_ps(sums); }
  static __m512 finish_q8(Sums sums) { return _mm512_cvtepi32_ps(sums); }
};

/// The same products over registers alone.
struct VnniByteStep {
  using Sum = __m512i;
  static constexpr DotType kType = DotType::kInt8;
  static constexpr int kSums = 16;
  static constexpr int kProducts = 64;
  static Sum first(int i) { return _mm512_set1_epi32(i); }
  static Sum next(Sum sum) {
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(5), _mm512_set1_epi8(3));
    asm volatile("" : "+" LATTE_WIDE_REGISTER(sum));
    return sum;
  }
  static float total(Sum sum) { return Avx512::hsum(_mm512_cvtepi32_ps(sum)); }
};
#endif

}  // namespace
}  // namespace latte
