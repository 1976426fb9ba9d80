#pragma once

#include <cstdint>

#include "device/cpu/amx_tiles.h"
#include "device/cpu/row_kernels.h"
#include "tensor/grouped.h"

// Products of many rows of x on AMX (prompt-class steps): a panel of weights is made into tiles of bf16 pairs once,
// pass by pass over K, and multiplied with all rows of x. Quantised weights are expanded to bf16 on the way.

namespace latte {
namespace {

/// Inputs of one pass: its tiles of weights stay in the first-level cache.
constexpr int kPassDepths = kWidePass / kTileDepth;

/// Inputs [k, k + 32 * depths) of 16 rows of bf16 weights as tiles `step` elements apart; rows past `n` are 0.
inline void pack_bf16(const std::uint16_t* w, std::int64_t stride, std::int64_t n, std::int64_t k, std::int64_t k_end,
                      std::int64_t step, std::uint16_t* to) {
  for (; k < k_end; k += kTileDepth, to += step) {
    __m512i tile[kTileRows];
    for (int row = 0; row < kTileRows; ++row)
      tile[row] = row < n ? load_depth(w + row * stride + k, k_end - k) : _mm512_setzero_si512();
    transpose_16x16(tile);
    for (int pair = 0; pair < kTileRows; ++pair) _mm512_storeu_si512(to + pair * kTileDepth, tile[pair]);
  }
}

/// Inputs [k, k_end) of 32 outputs of bf16 weights that lie by inputs: a depth's tile of the first 16 columns, then
/// that of the others. Columns past `n` are 0.
inline void pack_by_input(const std::uint16_t* w, std::int64_t stride, std::int64_t n, std::int64_t k,
                          std::int64_t k_end, std::uint16_t* to) {
  for (; k < k_end; k += kTileDepth, to += 2 * kTileElements) {
    for (int pair = 0; pair < kTileRows; ++pair) {
      const std::int64_t at = k + 2 * pair;
      const auto row = [&](std::int64_t i) {
        return i < k_end ? load_depth(w + i * stride, n) : _mm512_setzero_si512();
      };
      __m512i low, high;
      interleave(row(at), row(at + 1), low, high);
      _mm512_storeu_si512(to + pair * kTileDepth, low);
      _mm512_storeu_si512(to + kTileElements + pair * kTileDepth, high);
    }
  }
}

/// One input of a quad, of all 16 outputs: byte `kByte` of each lane.
template <int kByte>
[[gnu::always_inline]] inline __m512 signed_byte(__m512i quads) {
  return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(quads, 24 - 8 * kByte), 24));
}

/// The two rows of pairs that a quad of scaled codes makes.
[[gnu::always_inline]] inline void store_quad(__m512i quads, __m512 scale, std::uint16_t* to) {
  const __m512 a = _mm512_mul_ps(signed_byte<0>(quads), scale);
  const __m512 b = _mm512_mul_ps(signed_byte<1>(quads), scale);
  const __m512 c = _mm512_mul_ps(signed_byte<2>(quads), scale);
  const __m512 d = _mm512_mul_ps(signed_byte<3>(quads), scale);
  _mm512_storeu_si512(to, bf16_pairs(a, b));
  _mm512_storeu_si512(to + kTileDepth, bf16_pairs(c, d));
}

/// The same of a panel of grouped weights (tensor/grouped.h), whose groups are as deep as a tile.
inline void pack_grouped(const unsigned char* panel, bool four_bits, std::int64_t k, std::int64_t k_end,
                         std::int64_t step, std::uint16_t* to) {
  static_assert(kGroupInputs == kTileDepth && kPanelOutputs == kTileRows, "a group of a panel is a tile");
  const std::int64_t group_size = four_bits ? kQ4GroupBytes : kQ8GroupBytes;
  const std::int64_t block_size = kBlockScaleBytes + kBlockGroups * group_size;
  constexpr int kQuadBytes = 4 * kPanelOutputs;
  constexpr int kQ4Quads = kGroupInputs / 8;
  const __m512i half = _mm512_set1_epi8(0x0f);
  const __m512i zero = _mm512_set1_epi8(kQ4Zero);
  for (std::int64_t group = k / kGroupInputs; group * kGroupInputs < k_end; ++group, to += step) {
    const unsigned char* block = panel + group / kBlockGroups * block_size;
    const std::int64_t in_block = group % kBlockGroups;
    const __m512 scale = Avx512::load(reinterpret_cast<const std::uint16_t*>(block + in_block * kGroupScaleBytes));
    const unsigned char* codes = block + kBlockScaleBytes + in_block * group_size;
    if (four_bits) {
      for (int quad = 0; quad < kQ4Quads; ++quad) {
        const __m512i both = _mm512_loadu_si512(codes + quad * kQuadBytes);
        const __m512i low = _mm512_and_si512(both, half);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(both, 4), half);
        store_quad(_mm512_sub_epi8(low, zero), scale, to + 2 * quad * kTileDepth);
        store_quad(_mm512_sub_epi8(high, zero), scale, to + 2 * (quad + kQ4Quads) * kTileDepth);
      }
    } else {
      for (int quad = 0; quad < 2 * kQ4Quads; ++quad)
        store_quad(_mm512_loadu_si512(codes + quad * kQuadBytes), scale, to + 2 * quad * kTileDepth);
    }
  }
}

/// The panel's weights of one pass: for every depth a tile of its first 16 columns of `sums` and one of the others.
inline void pack_pass(const WidePanel& panel, std::int64_t k, std::int64_t k_end, std::uint16_t* to) {
  constexpr std::int64_t kStep = 2 * kTileElements;
  if (panel.type == WideWeight::kBf16ByInput) {
    return pack_by_input(static_cast<const std::uint16_t*>(panel.w), panel.w_stride, panel.n, k, k_end, to);
  }
  const auto pack = [&](const void* w, std::int64_t stride, std::int64_t n, std::uint16_t* tiles) {
    if (panel.type == WideWeight::kBf16) {
      pack_bf16(static_cast<const std::uint16_t*>(w), stride, n, k, k_end, kStep, tiles);
    } else {
      pack_grouped(static_cast<const unsigned char*>(w), panel.type == WideWeight::kQ4, k, k_end, kStep, tiles);
    }
  };
  if (panel.w_up != nullptr) {
    pack(panel.w, panel.w_stride, panel.n, to);
    pack(panel.w_up, panel.w_up_stride, panel.n, to + kTileElements);
    return;
  }
  pack(panel.w, panel.w_stride, panel.n < kTileRows ? panel.n : kTileRows, to);
  if (panel.n <= kTileRows) return;
  const bool rows = panel.type == WideWeight::kBf16;
  const std::int64_t bytes = rows ? kTileRows * panel.w_stride * 2 : panel.panel_bytes;
  pack(static_cast<const unsigned char*>(panel.w) + bytes, panel.w_stride, panel.n - kTileRows, to + kTileElements);
}

/// sums[32 rows][32] += x * tiles over one pass; `upper`: only 16 of the rows are there. Tiles of columns past the
/// panel's hold anything finite or not: their sums are not read.
inline void multiply_pass(const std::uint16_t* x, std::int64_t x_stride, const std::uint16_t* tiles, int depths,
                          bool first, bool upper, float* sums) {
  constexpr int kSumBytes = 4 * kWideSums;
  const std::int64_t row_bytes = 2 * x_stride;
  const std::uint16_t* lower = x + kTileRows * x_stride;
  float* const lower_sums = sums + kTileRows * kWideSums;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kSumBytes);
    _tile_loadd(1, sums + kTileRows, kSumBytes);
    _tile_loadd(2, lower_sums, kSumBytes);
    _tile_loadd(3, lower_sums + kTileRows, kSumBytes);
  }
  for (int depth = 0; depth < depths; ++depth) {
    _tile_loadd(6, tiles, 64);
    _tile_loadd(4, x + depth * kTileDepth, row_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, tiles + kTileElements, 64);
    _tile_dpbf16ps(1, 4, 7);
    if (!upper) {
      _tile_loadd(5, lower + depth * kTileDepth, row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    tiles += 2 * kTileElements;
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + kTileRows, kSumBytes);
  _tile_stored(2, lower_sums, kSumBytes);
  _tile_stored(3, lower_sums + kTileRows, kSumBytes);
}

/// Rows of x whose tiles cannot be loaded in place: the last rows, and where K is no whole number of depths.
inline void copy_rows(const std::uint16_t* x, std::int64_t x_stride, std::int64_t rows, std::int64_t width,
                      std::uint16_t* to) {
  for (int row = 0; row < 2 * kTileRows; ++row, to += kWidePass) {
    for (std::int64_t k = 0; k < width; k += kTileDepth) {
      _mm512_storeu_si512(to + k, row < rows ? load_depth(x + row * x_stride + k, width - k) : _mm512_setzero_si512());
    }
  }
}

inline void write_wide(const WidePanel& panel, const float* sums) {
  for (std::int64_t m = 0; m < panel.m; ++m, sums += kWideSums) {
    float* y = panel.y + m * panel.y_stride;
    if (panel.w_up != nullptr) {
      const auto gated = _mm512_mul_ps(silu<Avx512>(_mm512_loadu_ps(sums)), _mm512_loadu_ps(sums + kTileRows));
      Avx512::store_first(y, gated, static_cast<int>(panel.n));
      continue;
    }
    for (std::int64_t n = 0; n < panel.n; n += kTileRows) {
      const int count = static_cast<int>(panel.n - n < kTileRows ? panel.n - n : kTileRows);
      auto sum = _mm512_loadu_ps(sums + n);
      if (panel.accumulate) sum = _mm512_add_ps(Avx512::load_first(y + n, count), sum);
      Avx512::store_first(y + n, sum, count);
    }
  }
}

inline void wide_product(const WidePanel& panel) {
  const TileUse use;
  auto* tiles = reinterpret_cast<std::uint16_t*>(panel.scratch);
  auto* copy = tiles + 2 * kPassDepths * kTileElements;
  float* sums = panel.scratch + (2 * kPassDepths * kTileElements + 2 * kTileRows * kWidePass) / 2;
  for (std::int64_t k = 0; k < panel.k; k += kWidePass) {
    const std::int64_t k_end = k + kWidePass < panel.k ? k + kWidePass : panel.k;
    const std::int64_t width = k_end - k;
    const int depths = static_cast<int>((width + kTileDepth - 1) / kTileDepth);
    pack_pass(panel, k, k_end, tiles);
    before_tile_loads();
    for (std::int64_t m = 0; m < panel.m; m += 2 * kTileRows) {
      const std::uint16_t* x = panel.x + m * panel.x_stride + k;
      std::int64_t stride = panel.x_stride;
      const std::int64_t rows = panel.m - m;
      if (rows < 2 * kTileRows || width % kTileDepth != 0) {
        copy_rows(x, stride, rows, width, copy);
        before_tile_loads();
        x = copy;
        stride = kWidePass;
      }
      multiply_pass(x, stride, tiles, depths, k == 0, rows <= kTileRows, sums + m * kWideSums);
    }
  }
  write_wide(panel, sums);
}

}  // namespace
}  // namespace latte
