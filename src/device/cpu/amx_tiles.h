#pragma once

#include <cstdint>

#include "device/cpu/simd_avx512.h"

// Tiles of AMX: 16 rows of 64 bytes. A product of tiles is c[i][j] += sum over k of a[i][k] b[k][j] for 16 x 16 floats
// and 32 values of k, where b lies in pairs: its row k / 2 holds (b[k][j], b[k + 1][j]) for every j. An element's sum
// runs over k in one order whatever its neighbours hold.

namespace latte {
namespace {

inline constexpr int kTileRows = 16;
inline constexpr int kTileDepth = 32;                         ///< bf16 values of one tile row
inline constexpr int kTileElements = kTileRows * kTileDepth;  ///< bf16 values of a tile
inline constexpr int kTileBytes = 1024;

/// All eight tiles whole, for as long as it lives: the processor keeps the state of a thread that uses tiles.
class TileUse {
 public:
  TileUse() {
    struct alignas(64) {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shape;
    for (int tile = 0; tile < 8; ++tile) {
      shape.row_bytes[tile] = 64;
      shape.rows[tile] = kTileRows;
    }
    asm volatile("" : : "r"(&shape) : "memory");  // all of it is read, not only what g++'s intrinsic says
    _tile_loadconfig(&shape);
  }
  ~TileUse() { _tile_release(); }
  TileUse(const TileUse&) = delete;
  TileUse& operator=(const TileUse&) = delete;
};

/// Keeps what was written before it in front of the tile loads after it: g++ does not know that those read memory.
[[gnu::always_inline]] inline void before_tile_loads() { asm volatile("" ::: "memory"); }

/// Rows become columns, 32 bits each.
[[gnu::always_inline]] inline void transpose_16x16(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // r[4 g + c] holds in each quarter q column 4 q + c of rows 4 g .. 4 g + 3.
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88);
    const __m512i b = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd);
    const __m512i d = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    const __m512i e = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(a, d, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(a, d, 0xdd);
    t[4 + c] = _mm512_shuffle_i32x4(b, e, 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(b, e, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

/// Lane i becomes the pair (a[i], b[i]), each rounded to bf16.
[[gnu::always_inline]] inline __m512i bf16_pairs(__m512 a, __m512 b) {
  const __m512i halves = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));  // a in the low half, b in the high
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, halves);
}

/// Columns 0..15 of two rows of bf16 as pairs, and columns 16..31.
[[gnu::always_inline]] inline void interleave(__m512i a, __m512i b, __m512i& low, __m512i& high) {
  const __m512i low_order = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6,
                                             37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high_order = _mm512_set_epi16(63, 31, 62, 30, 61, 29, 60, 28, 59, 27, 58, 26, 57, 25, 56, 24, 55, 23,
                                              54, 22, 53, 21, 52, 20, 51, 19, 50, 18, 49, 17, 48, 16);
  low = _mm512_permutex2var_epi16(a, low_order, b);
  high = _mm512_permutex2var_epi16(a, high_order, b);
}

/// The first `n` > 0 of 32 values of a row, 0 in place of the others.
[[gnu::always_inline]] inline __m512i load_depth(const std::uint16_t* p, std::int64_t n) {
  if (n >= kTileDepth) return _mm512_loadu_si512(p);
  return _mm512_maskz_loadu_epi16(static_cast<__mmask32>((1u << n) - 1u), p);
}

/// 32 floats from `from` on rounded to bf16, those past `width` 0.
[[gnu::always_inline]] inline __m512i round_depth(const float* from, std::int64_t width) {
  const auto some = [](std::int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1); };
  const __m512 low = _mm512_maskz_loadu_ps(some(width), from);
  const __m512 high = width <= 16 ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(some(width - 16), from + 16);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

}  // namespace
}  // namespace latte
