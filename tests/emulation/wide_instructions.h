#pragma once

// The instructions of AVX-512 (F, BW, DQ, VL, VNNI, BF16) and AMX that the kernels use, in plain C++ over the
// compiler's vector types, so that those kernels run on any x86-64 machine with AVX2: slowly, and with each lane's
// arithmetic as Intel's manual gives it (of the dot products of bf16 also the order; they flush denormal numbers to
// zero, which is left out). The build includes it in front of the wide kernel units (LATTE_EMULATE_WIDE); a name that
// is missing here is an error there: an instruction that the machine lacks cannot slip in.

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#define __AVX512F__ 1
#define __AVX512BW__ 1
#define __AVX512DQ__ 1
#define __AVX512VL__ 1
#define __AVX512VNNI__ 1
#define __AVX512BF16__ 1
#define __AMX_TILE__ 1
#define __AMX_BF16__ 1
#define __AMX_INT8__ 1
#define LATTE_WIDE_REGISTER "m"

namespace latte::emulated {

/// The same bits as lanes of `To`.
template <class To, class From>
To as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// A vector of type V whose lane i is f(i).
template <class T, class V, class F>
V lanes(F f) {
  constexpr int kCount = sizeof(V) / sizeof(T);
  T values[kCount];
  for (int i = 0; i < kCount; ++i) values[i] = static_cast<T>(f(i));
  V v;
  std::memcpy(&v, values, sizeof v);
  return v;
}

/// Lane i of a vector as a T.
template <class T, class V>
T lane(const V& v, int i) {
  T value;
  std::memcpy(&value, reinterpret_cast<const char*>(&v) + i * static_cast<int>(sizeof(T)), sizeof value);
  return value;
}

template <class T>
T at(const void* p, int i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(p) + i * static_cast<int>(sizeof(T)), sizeof value);
  return value;
}

inline bool bit(std::uint64_t mask, int i) { return (mask >> i & 1) != 0; }
inline float of_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
inline std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (std::isnan(x)) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline int saturated16(int x) { return x > 32767 ? 32767 : x < -32768 ? -32768 : x; }

// Loads and stores.
inline __m512 loadu_ps(const void* p) { return at<__m512>(p, 0); }
inline void storeu_ps(void* p, __m512 v) { std::memcpy(p, &v, sizeof v); }
inline __m512i loadu_si512(const void* p) { return at<__m512i>(p, 0); }
inline void storeu_si512(void* p, __m512i v) { std::memcpy(p, &v, sizeof v); }
inline __m512 maskz_loadu_ps(__mmask16 m, const void* p) {
  return lanes<float, __m512>([&](int i) { return bit(m, i) ? at<float>(p, i) : 0.0f; });
}
inline void mask_storeu_ps(void* p, __mmask16 m, __m512 v) {
  for (int i = 0; i < 16; ++i)
    if (bit(m, i)) std::memcpy(static_cast<float*>(p) + i, reinterpret_cast<const float*>(&v) + i, sizeof(float));
}
template <class V>
V maskz_loadu_epi16(std::uint64_t m, const void* p) {
  return lanes<std::uint16_t, V>([&](int i) { return bit(m, i) ? at<std::uint16_t>(p, i) : std::uint16_t{0}; });
}
inline void mask_storeu_epi16(void* p, __mmask16 m, __m256i v) {
  for (int i = 0; i < 16; ++i) {
    const auto value = lane<std::uint16_t>(v, i);
    if (bit(m, i)) std::memcpy(static_cast<std::uint16_t*>(p) + i, &value, sizeof value);
  }
}

// Floats.
inline __m512 set1_ps(float x) {
  return lanes<float, __m512>([&](int) { return x; });
}
template <class F>
__m512 each_ps(__m512 a, __m512 b, F f) {
  return lanes<float, __m512>([&](int i) { return f(lane<float>(a, i), lane<float>(b, i)); });
}
inline __m512 add_ps(__m512 a, __m512 b) { return a + b; }
inline __m512 sub_ps(__m512 a, __m512 b) { return a - b; }
inline __m512 mul_ps(__m512 a, __m512 b) { return a * b; }
inline __m512 div_ps(__m512 a, __m512 b) { return a / b; }
inline __m512 max_ps(__m512 a, __m512 b) {
  return each_ps(a, b, [](float x, float y) { return x > y ? x : y; });
}
inline __m512 min_ps(__m512 a, __m512 b) {
  return each_ps(a, b, [](float x, float y) { return x < y ? x : y; });
}
inline __m512 fmadd_ps(__m512 a, __m512 b, __m512 c) {
  return lanes<float, __m512>(
      [&](int i) { return __builtin_fmaf(lane<float>(a, i), lane<float>(b, i), lane<float>(c, i)); });
}
template <int kHow>
__m512 roundscale_ps(__m512 v) {
  static_assert(kHow == (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  return lanes<float, __m512>([&](int i) { return std::nearbyint(lane<float>(v, i)); });
}
template <int kHow>
__m512 reduce_ps(__m512 v) {
  static_assert(kHow == (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC));
  return lanes<float, __m512>([&](int i) {
    const auto x = lane<float>(v, i);
    return std::isinf(x) ? 0.0f : x - std::floor(x);
  });
}
/// a 2^floor(b).
inline __m512 scalef_ps(__m512 a, __m512 b) {
  return each_ps(a, b, [](float x, float y) {
    if (std::isnan(y)) return y;
    const float power = std::floor(y);
    return std::ldexp(x, power > 1000 ? 1000 : power < -1000 ? -1000 : static_cast<int>(power));
  });
}
template <int kHow>
__mmask16 cmp_ps_mask(__m512 a, __m512 b) {
  static_assert(kHow == _CMP_LT_OQ);
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) mask |= (lane<float>(a, i) < lane<float>(b, i) ? 1u : 0u) << i;
  return static_cast<__mmask16>(mask);
}
inline __m512 mask_blend_ps(__mmask16 m, __m512 no, __m512 yes) {
  return lanes<float, __m512>([&](int i) { return lane<float>(bit(m, i) ? yes : no, i); });
}

// Conversions.
inline __m512 cvtph_ps(__m256i halves) {
  __m512 both = {};
  const __m256 parts[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
                           _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
  std::memcpy(&both, parts, sizeof both);
  return both;
}
inline __m512i cvtepi8_epi32(__m128i v) {
  return lanes<std::int32_t, __m512i>([&](int i) { return lane<std::int8_t>(v, i); });
}
inline __m512i cvtepu16_epi32(__m256i v) {
  return lanes<std::int32_t, __m512i>([&](int i) { return lane<std::uint16_t>(v, i); });
}
inline __m512 cvtepi32_ps(__m512i v) {
  return lanes<float, __m512>([&](int i) { return static_cast<float>(lane<std::int32_t>(v, i)); });
}
inline __m512i cvtps_epi32(__m512 v) {
  return lanes<std::int32_t, __m512i>([&](int i) {
    const float x = std::nearbyint(lane<float>(v, i));
    return x >= -0x1p31f && x < 0x1p31f ? static_cast<std::int32_t>(x) : INT32_MIN;
  });
}
inline __m512bh cvtne2ps_pbh(__m512 high, __m512 low) {
  return lanes<std::uint16_t, __m512bh>(
      [&](int i) { return to_bf16(i < 16 ? lane<float>(low, i) : lane<float>(high, i - 16)); });
}
inline __m256bh cvtneps_pbh(__m512 v) {
  return lanes<std::uint16_t, __m256bh>([&](int i) { return to_bf16(lane<float>(v, i)); });
}
template <int kHalf>
__m256 extractf32x8_ps(__m512 v) {
  return lanes<float, __m256>([&](int i) { return lane<float>(v, 8 * kHalf + i); });
}

// Integers.
template <class T>
__m512i set1(T x) {
  return lanes<T, __m512i>([&](int) { return x; });
}
template <class T, class F>
__m512i each(__m512i a, __m512i b, F f) {
  return lanes<T, __m512i>([&](int i) { return f(lane<T>(a, i), lane<T>(b, i)); });
}
template <class T>
__m512i add(__m512i a, __m512i b) {
  return each<T>(a, b, [](T x, T y) { return x + y; });
}
template <class T>
__m512i sub(__m512i a, __m512i b) {
  return each<T>(a, b, [](T x, T y) { return x - y; });
}
template <class T>
__m512i shift_left(__m512i v, int n) {
  return lanes<T, __m512i>([&](int i) { return lane<T>(v, i) << n; });
}
/// Arithmetic for signed T.
template <class T>
__m512i shift_right(__m512i v, int n) {
  return lanes<T, __m512i>([&](int i) { return lane<T>(v, i) >> n; });
}
inline __m512i mask_blend_epi16(__mmask32 m, __m512i no, __m512i yes) {
  return lanes<std::uint16_t, __m512i>([&](int i) { return lane<std::uint16_t>(bit(m, i) ? yes : no, i); });
}
/// Bit by bit what `kHow` holds at 4 a + 2 b + c.
template <int kHow>
__m512i ternarylogic(__m512i a, __m512i b, __m512i c) {
  __m512i result{};
  for (int i = 0; i < 8; ++i) {
    const __m512i in_a = i & 4 ? a : ~a, in_b = i & 2 ? b : ~b, in_c = i & 1 ? c : ~c;
    if (kHow >> i & 1) result |= in_a & in_b & in_c;
  }
  return result;
}
inline __m512i mask_sub_epi8(__m512i from, __mmask64 m, __m512i a, __m512i b) {
  return lanes<std::int8_t, __m512i>([&](int i) {
    return bit(m, i) ? lane<std::int8_t>(a, i) - lane<std::int8_t>(b, i) : lane<std::int8_t>(from, i);
  });
}
inline __m512i abs_epi8(__m512i v) {
  return lanes<std::int8_t, __m512i>([&](int i) { return std::abs(int{lane<std::int8_t>(v, i)}); });
}
inline __mmask64 movepi8_mask(__m512i v) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= (lane<std::int8_t>(v, i) < 0 ? std::uint64_t{1} : 0) << i;
  return mask;
}
/// Pairs of products of unsigned bytes of `a` and signed ones of `b`, kept within 16 bits.
inline __m512i maddubs_epi16(__m512i a, __m512i b) {
  return lanes<std::int16_t, __m512i>([&](int i) {
    const auto product = [&](int at) { return lane<std::uint8_t>(a, at) * lane<std::int8_t>(b, at); };
    return saturated16(product(2 * i) + product(2 * i + 1));
  });
}
inline __m512i madd_epi16(__m512i a, __m512i b) {
  return lanes<std::int32_t, __m512i>([&](int i) {
    const auto product = [&](int at) { return lane<std::int16_t>(a, at) * lane<std::int16_t>(b, at); };
    return std::int64_t{product(2 * i)} + product(2 * i + 1);  // wraps, as in the processor
  });
}
inline __m512i dpbusd_epi32(__m512i sums, __m512i a, __m512i b) {
  return lanes<std::int32_t, __m512i>([&](int i) {
    std::int64_t sum = lane<std::int32_t>(sums, i);
    for (int at = 4 * i; at < 4 * i + 4; ++at) sum += lane<std::uint8_t>(a, at) * lane<std::int8_t>(b, at);
    return sum;
  });
}
/// Both halves of every 128 bits: the low or the high elements of a and b by turns.
template <class T, bool kHigh>
__m512i unpack(__m512i a, __m512i b) {
  constexpr int kLanes = 16 / sizeof(T);
  return lanes<T, __m512i>([&](int i) {
    const int from = i / kLanes * kLanes + (kHigh ? kLanes / 2 : 0) + i % kLanes / 2;
    return lane<T>(i % 2 == 0 ? a : b, from);
  });
}
/// Quarters of 128 bits: two of a, then two of b.
template <int kOrder>
__m512i shuffle_i32x4(__m512i a, __m512i b) {
  return lanes<std::int32_t, __m512i>([&](int i) {
    const int quarter = kOrder >> (2 * (i / 4)) & 3;
    return lane<std::int32_t>(i < 8 ? a : b, 4 * quarter + i % 4);
  });
}
inline __m512i permutexvar_epi16(__m512i order, __m512i v) {
  return lanes<std::int16_t, __m512i>([&](int i) { return lane<std::int16_t>(v, lane<std::uint16_t>(order, i) & 31); });
}
inline __m512i permutex2var_epi16(__m512i a, __m512i order, __m512i b) {
  return lanes<std::int16_t, __m512i>([&](int i) {
    const int from = lane<std::uint16_t>(order, i) & 63;
    return lane<std::int16_t>(from < 32 ? a : b, from % 32);
  });
}
inline __m512 permutex2var_ps(__m512 a, __m512i order, __m512 b) {
  return lanes<float, __m512>([&](int i) {
    const int from = lane<std::int32_t>(order, i) & 31;
    return lane<float>(from < 16 ? a : b, from % 16);
  });
}
/// From the first lane to the last.
template <class... Values>
__m512i setr_epi32(Values... values) {
  const std::int32_t given[] = {values...};
  static_assert(sizeof given == 64);
  return lanes<std::int32_t, __m512i>([&](int i) { return given[i]; });
}
/// From the last lane to the first.
template <class... Values>
__m512i set_epi16(Values... values) {
  const std::int16_t reversed[] = {static_cast<std::int16_t>(values)...};
  static_assert(sizeof reversed == 64);
  return lanes<std::int16_t, __m512i>([&](int i) { return reversed[31 - i]; });
}

inline __m512 dpbf16_ps(__m512 sums, __m512bh a, __m512bh b) {
  return lanes<float, __m512>([&](int i) {
    auto sum = lane<float>(sums, i);
    for (const int at : {2 * i + 1, 2 * i})
      sum = __builtin_fmaf(of_bf16(lane<std::uint16_t>(a, at)), of_bf16(lane<std::uint16_t>(b, at)), sum);
    return sum;
  });
}

// Tiles: all eight of 16 rows of 64 bytes, as the kernels configure them. A thread that has not configured its tiles,
// or has released them, ends the program, as the processor would.
struct Tiles {
  alignas(64) char bytes[8][16][64] = {};
  bool in_use = false;
};
inline Tiles& tiles() {
  static thread_local Tiles mine;
  return mine;
}
inline char (&tile(int i))[16][64] {
  if (!tiles().in_use) std::abort();
  return tiles().bytes[i];
}
inline void tile_loadconfig(const void* shape) {
  const char* bytes = static_cast<const char*>(shape);
  bool whole = bytes[0] == 1;
  for (int i = 0; i < 8; ++i) whole = whole && bytes[16 + 2 * i] == 64 && bytes[17 + 2 * i] == 0 && bytes[48 + i] == 16;
  if (!whole) std::abort();
  tiles() = {};
  tiles().in_use = true;
}
inline void tile_release() { tiles().in_use = false; }
inline void tile_zero(int i) { std::memset(tile(i), 0, 1024); }
inline void tile_loadd(int i, const void* from, std::int64_t stride) {
  for (int row = 0; row < 16; ++row) std::memcpy(tile(i)[row], static_cast<const char*>(from) + row * stride, 64);
}
inline void tile_stored(int i, void* to, std::int64_t stride) {
  for (int row = 0; row < 16; ++row) std::memcpy(static_cast<char*>(to) + row * stride, tile(i)[row], 64);
}
/// Even and odd values of k are summed apart, then both are added to c.
inline void tile_dpbf16ps(int c, int a, int b) {
  for (int m = 0; m < 16; ++m) {
    float sums[2][16] = {};
    for (int k = 0; k < 16; ++k) {
      for (int n = 0; n < 16; ++n) {
        for (int odd = 0; odd < 2; ++odd) {
          const float x = of_bf16(at<std::uint16_t>(tile(a)[m], 2 * k + odd));
          const float y = of_bf16(at<std::uint16_t>(tile(b)[k], 2 * n + odd));
          sums[odd][n] = __builtin_fmaf(x, y, sums[odd][n]);
        }
      }
    }
    for (int n = 0; n < 16; ++n) {
      const float sum = at<float>(tile(c)[m], n) + (sums[0][n] + sums[1][n]);
      std::memcpy(tile(c)[m] + 4 * n, &sum, sizeof sum);
    }
  }
}
inline void tile_dpbssd(int c, int a, int b) {
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 16; ++n) {
      std::int64_t wide = at<std::int32_t>(tile(c)[m], n);
      for (int k = 0; k < 64; ++k) wide += tile(a)[m][k] * tile(b)[k / 4][4 * n + k % 4];
      const auto sum = static_cast<std::int32_t>(wide);
      std::memcpy(tile(c)[m] + 4 * n, &sum, sizeof sum);
    }
  }
}

}  // namespace latte::emulated

#define _mm512_setzero_ps() (__m512{})
#define _mm512_setzero_si512() (__m512i{})
#define _mm512_set1_ps latte::emulated::set1_ps
#define _mm512_loadu_ps latte::emulated::loadu_ps
#define _mm512_load_ps latte::emulated::loadu_ps
#define _mm512_storeu_ps latte::emulated::storeu_ps
#define _mm512_store_ps latte::emulated::storeu_ps
#define _mm512_loadu_si512 latte::emulated::loadu_si512
#define _mm512_storeu_si512 latte::emulated::storeu_si512
#define _mm512_maskz_loadu_ps latte::emulated::maskz_loadu_ps
#define _mm512_mask_storeu_ps latte::emulated::mask_storeu_ps
#define _mm512_maskz_loadu_epi16 latte::emulated::maskz_loadu_epi16<__m512i>
#define _mm256_maskz_loadu_epi16 latte::emulated::maskz_loadu_epi16<__m256i>
#define _mm256_mask_storeu_epi16 latte::emulated::mask_storeu_epi16
#define _mm512_add_ps latte::emulated::add_ps
#define _mm512_sub_ps latte::emulated::sub_ps
#define _mm512_mul_ps latte::emulated::mul_ps
#define _mm512_div_ps latte::emulated::div_ps
#define _mm512_max_ps latte::emulated::max_ps
#define _mm512_min_ps latte::emulated::min_ps
#define _mm512_fmadd_ps latte::emulated::fmadd_ps
#undef _mm512_roundscale_ps
#define _mm512_roundscale_ps(v, how) latte::emulated::roundscale_ps<(how)>(v)
#undef _mm512_reduce_ps
#define _mm512_reduce_ps(v, how) latte::emulated::reduce_ps<(how)>(v)
#define _mm512_scalef_ps latte::emulated::scalef_ps
#undef _mm512_cmp_ps_mask
#define _mm512_cmp_ps_mask(a, b, how) latte::emulated::cmp_ps_mask<(how)>(a, b)
#define _mm512_mask_blend_ps latte::emulated::mask_blend_ps
#define _mm512_cvtph_ps latte::emulated::cvtph_ps
#define _mm512_cvtepi8_epi32 latte::emulated::cvtepi8_epi32
#define _mm512_cvtepu16_epi32 latte::emulated::cvtepu16_epi32
#define _mm512_cvtepi32_ps latte::emulated::cvtepi32_ps
#define _mm512_cvtps_epi32 latte::emulated::cvtps_epi32
#define _mm512_cvtne2ps_pbh latte::emulated::cvtne2ps_pbh
#define _mm512_cvtneps_pbh latte::emulated::cvtneps_pbh
#define _mm512_castsi512_ps latte::emulated::as<__m512>
#define _mm512_castps_si512 latte::emulated::as<__m512i>
#define _mm512_castps512_ps256 latte::emulated::extractf32x8_ps<0>
#undef _mm512_extractf32x8_ps
#define _mm512_extractf32x8_ps(v, half) latte::emulated::extractf32x8_ps<(half)>(v)
#undef _mm512_ternarylogic_epi32
#define _mm512_ternarylogic_epi32(a, b, c, how) latte::emulated::ternarylogic<(how)>(a, b, c)
#define _mm512_mask_blend_epi16 latte::emulated::mask_blend_epi16
#define _mm512_set1_epi8 latte::emulated::set1<char>
#define _mm512_set1_epi16 latte::emulated::set1<std::int16_t>
#define _mm512_set1_epi32 latte::emulated::set1<std::int32_t>
#define _mm512_set_epi16 latte::emulated::set_epi16
#undef _mm512_setr_epi32
#define _mm512_setr_epi32 latte::emulated::setr_epi32
#define _mm512_add_epi16 latte::emulated::add<std::uint16_t>
#define _mm512_add_epi32 latte::emulated::add<std::uint32_t>
#define _mm512_sub_epi8 latte::emulated::sub<std::uint8_t>
#define _mm512_sub_epi32 latte::emulated::sub<std::uint32_t>
#define _mm512_mask_sub_epi8 latte::emulated::mask_sub_epi8
#define _mm512_and_si512(a, b) ((a) & (b))
#define _mm512_xor_si512(a, b) ((a) ^ (b))
#undef _mm512_slli_epi32
#define _mm512_slli_epi32 latte::emulated::shift_left<std::uint32_t>
#undef _mm512_srli_epi32
#define _mm512_srli_epi32 latte::emulated::shift_right<std::uint32_t>
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 latte::emulated::shift_right<std::int32_t>
#undef _mm512_srli_epi16
#define _mm512_srli_epi16 latte::emulated::shift_right<std::uint16_t>
#define _mm512_abs_epi8 latte::emulated::abs_epi8
#define _mm512_movepi8_mask latte::emulated::movepi8_mask
#define _mm512_maddubs_epi16 latte::emulated::maddubs_epi16
#define _mm512_madd_epi16 latte::emulated::madd_epi16
#define _mm512_dpbusd_epi32 latte::emulated::dpbusd_epi32
#define _mm512_unpacklo_epi32 latte::emulated::unpack<std::uint32_t, false>
#define _mm512_unpackhi_epi32 latte::emulated::unpack<std::uint32_t, true>
#define _mm512_unpacklo_epi64 latte::emulated::unpack<std::uint64_t, false>
#define _mm512_unpackhi_epi64 latte::emulated::unpack<std::uint64_t, true>
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4(a, b, order) latte::emulated::shuffle_i32x4<(order)>(a, b)
#define _mm512_permutexvar_epi16 latte::emulated::permutexvar_epi16
#define _mm512_permutex2var_epi16 latte::emulated::permutex2var_epi16
#define _mm512_permutex2var_ps latte::emulated::permutex2var_ps
#define _mm512_dpbf16_ps latte::emulated::dpbf16_ps
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#define _tile_loadconfig latte::emulated::tile_loadconfig
#define _tile_release latte::emulated::tile_release
#define _tile_zero latte::emulated::tile_zero
#define _tile_loadd latte::emulated::tile_loadd
#define _tile_stream_loadd latte::emulated::tile_loadd
#define _tile_stored latte::emulated::tile_stored
#define _tile_dpbf16ps latte::emulated::tile_dpbf16ps
#define _tile_dpbssd latte::emulated::tile_dpbssd
