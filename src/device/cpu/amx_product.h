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

/// Codes of kBits bits, stored as code + 2^(kBits - 1), times a scale. A code that is shifted to the top of a mantissa
/// and given the exponent of 2^kBits is 2^kBits more than what is stored, and one fma makes the exact product of it.
template <int kBits>
class CodeProducts {
 public:
  explicit CodeProducts(__m512 scale)
      : scale_(scale), offset_(_mm512_mul_ps(scale, _mm512_set1_ps(-1.5f * (1 << kBits)))) {}

  /// bf16 pairs of the codes at bits kLow and kHigh of every lane, rounded to nearest, ties away from zero.
  template <int kLow, int kHigh>
  [[gnu::always_inline]] __m512i pairs(__m512i lanes) const {
    const __m512i half = _mm512_set1_epi32(0x8000);
    const __m512i low = _mm512_add_epi32(_mm512_castps_si512(product<kLow>(lanes)), half);
    const __m512i high = _mm512_add_epi32(_mm512_castps_si512(product<kHigh>(lanes)), half);
    return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(low, 16), high);
  }

 private:
  static constexpr int kMantissa = 23;

  template <int kFrom>
  [[gnu::always_inline]] __m512 product(__m512i lanes) const {
    constexpr int kUp = kMantissa - kBits - kFrom;
    const __m512i mask = _mm512_set1_epi32(((1 << kBits) - 1) << (kMantissa - kBits));
    const __m512i exponent = _mm512_set1_epi32((127 + kBits) << kMantissa);
    constexpr int kMaskOrExponent = 0xea;  // (a & b) | c
    __m512i moved;
    if constexpr (kUp >= 0) {
      moved = _mm512_slli_epi32(lanes, kUp);
    } else {
      moved = _mm512_srli_epi32(lanes, -kUp);
    }
    const __m512i bits = _mm512_ternarylogic_epi32(moved, mask, exponent, kMaskOrExponent);
    return _mm512_fmadd_ps(_mm512_castsi512_ps(bits), scale_, offset_);
  }

  __m512 scale_, offset_;
};

/// Inputs [k, k_end) of a panel of grouped weights (tensor/grouped.h), whose groups are as deep as a tile.
inline void pack_grouped(const unsigned char* panel, bool four_bits, std::int64_t k, std::int64_t k_end,
                         std::int64_t step, std::uint16_t* to) {
  static_assert(kGroupInputs == kTileDepth && kPanelOutputs == kTileRows, "a group of a panel is a tile");
  const std::int64_t group_size = group_bytes(four_bits ? DType::kQ4 : DType::kQ8);
  const std::int64_t block_size = block_bytes(four_bits ? DType::kQ4 : DType::kQ8);
  constexpr int kQuadBytes = 4 * kPanelOutputs;
  constexpr int kQ4Quads = kGroupInputs / 8;
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t group = k / kGroupInputs; group * kGroupInputs < k_end; ++group, to += step) {
    const unsigned char* block = panel + group / kBlockGroups * block_size;
    const std::int64_t in_block = group % kBlockGroups;
    const __m512 scale = Avx512::load(reinterpret_cast<const std::uint16_t*>(block + in_block * kGroupScaleBytes));
    const unsigned char* codes = block + kBlockScaleBytes + in_block * group_size;
    if (four_bits) {
      const CodeProducts<4> products(scale);
      for (int quad = 0; quad < kQ4Quads; ++quad) {
        const __m512i halves = _mm512_loadu_si512(codes + quad * kQuadBytes);
        std::uint16_t* low = to + 2 * quad * kTileDepth;
        std::uint16_t* high = low + 2 * kQ4Quads * kTileDepth;
        _mm512_storeu_si512(low, products.pairs<0, 8>(halves));
        _mm512_storeu_si512(low + kTileDepth, products.pairs<16, 24>(halves));
        _mm512_storeu_si512(high, products.pairs<4, 12>(halves));
        _mm512_storeu_si512(high + kTileDepth, products.pairs<20, 28>(halves));
      }
    } else {
      const CodeProducts<8> products(scale);
      for (int quad = 0; quad < 2 * kQ4Quads; ++quad) {
        const __m512i bytes = _mm512_xor_si512(_mm512_loadu_si512(codes + quad * kQuadBytes), sign);
        std::uint16_t* pair = to + 2 * quad * kTileDepth;
        _mm512_storeu_si512(pair, products.pairs<0, 8>(bytes));
        _mm512_storeu_si512(pair + kTileDepth, products.pairs<16, 24>(bytes));
      }
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

/// Weights that the next pass packs, fetched into the second-level cache while this one multiplies.
class WeightsAhead {
 public:
  /// Inputs [k, k_end) of a panel's weights `following` weight rows on.
  WeightsAhead(const WidePanel& panel, std::int64_t following, std::int64_t k, std::int64_t k_end) {
    if (panel.type == WideWeight::kBf16ByInput) return;
    add(panel, panel.w, panel.w_stride, following, k, k_end);
    if (panel.w_up != nullptr) add(panel, panel.w_up, panel.w_up_stride, following, k, k_end);
  }
  /// Nothing follows.
  WeightsAhead() = default;

  std::int64_t lines() const { return count_ * rows_ * row_lines_; }

  void fetch(std::int64_t lines) {
    for (; lines > 0 && at_ < count_; --lines) {
      __builtin_prefetch(from_[at_] + row_ * stride_[at_] + line_ * kLine, 0, 2);
      if (++line_ < row_lines_) continue;
      line_ = 0;
      if (++row_ < rows_) continue;
      row_ = 0;
      ++at_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;

  void add(const WidePanel& panel, const void* w, std::int64_t w_stride, std::int64_t following, std::int64_t k,
           std::int64_t k_end) {
    std::int64_t stride = 2 * w_stride, first = following, begin = 2 * k, end = 2 * k_end;
    rows_ = panel.n;
    if (panel.type != WideWeight::kBf16) {
      const std::int64_t block = block_bytes(panel.type == WideWeight::kQ4 ? DType::kQ4 : DType::kQ8);
      constexpr std::int64_t kBlock = kBlockGroups * kGroupInputs;
      stride = panel.panel_bytes;
      first = following / kPanelOutputs;
      begin = k / kBlock * block;
      end = (k_end + kBlock - 1) / kBlock * block;
      rows_ = (panel.n + kPanelOutputs - 1) / kPanelOutputs;
    }
    from_[count_] = static_cast<const char*>(w) + first * stride + begin;
    stride_[count_++] = stride;
    row_lines_ = (end - begin + kLine - 1) / kLine;
  }

  const char* from_[2] = {};
  std::int64_t stride_[2] = {};
  std::int64_t count_ = 0, rows_ = 0, row_lines_ = 0;
  std::int64_t at_ = 0, row_ = 0, line_ = 0;
};

/// sums[32 rows][32] += x * tiles over one pass; `upper`: only 16 of the rows are there. Tiles of columns past the
/// panel's hold anything finite or not: their sums are not read. `lines` of the weights ahead come with every depth.
/// x streams by, so that the weights' tiles stay in the first-level cache.
inline void multiply_pass(const std::uint16_t* x, std::int64_t row_tiles, const std::uint16_t* tiles, int depths,
                          bool first, bool upper, WeightsAhead& ahead, std::int64_t lines, float* sums) {
  constexpr int kSumBytes = 4 * kWideSums;
  constexpr int kRowBytes = 2 * kTileDepth;
  const std::uint16_t* lower = x + row_tiles;
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
    _tile_loadd(6, tiles, kRowBytes);
    _tile_stream_loadd(4, x + depth * kTileElements, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, tiles + kTileElements, kRowBytes);
    _tile_dpbf16ps(1, 4, 7);
    if (!upper) {
      _tile_stream_loadd(5, lower + depth * kTileElements, kRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    ahead.fetch(lines);
    tiles += 2 * kTileElements;
  }
  _tile_stored(0, sums, kSumBytes);
  _tile_stored(1, sums + kTileRows, kSumBytes);
  _tile_stored(2, lower_sums, kSumBytes);
  _tile_stored(3, lower_sums + kTileRows, kSumBytes);
}

/// As KernelTable::wide_rows.
inline void wide_rows(const float* x, std::int64_t stride, int rows, std::int64_t k, std::uint16_t* to) {
  static_assert(kWideTileRows == kTileRows && kWideTileInputs == kTileDepth, "x lies in tiles");
  for (std::int64_t at = 0; at < k; at += kTileDepth, to += kTileElements) {
    for (int row = 0; row < kTileRows; ++row) {
      const __m512i values = row < rows ? round_depth(x + row * stride + at, k - at) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + row * kTileDepth, values);
    }
  }
}

/// Asks for the lines of y that 32 rows from `m` on will be written to.
inline void expect_writes(const WidePanel& panel, std::int64_t m) {
  const std::int64_t end = panel.m < m + 2 * kTileRows ? panel.m : m + 2 * kTileRows;
  for (; m < end; ++m) {
    const float* y = panel.y + m * panel.y_stride;
    __builtin_prefetch(y, 1, 3);
    if (panel.n > kTileRows) __builtin_prefetch(y + kTileRows, 1, 3);
  }
}

/// Writes 32 rows from `m` on, which `sums` holds.
inline void write_wide(const WidePanel& panel, std::int64_t m, const float* sums) {
  const std::int64_t end = panel.m < m + 2 * kTileRows ? panel.m : m + 2 * kTileRows;
  for (; m < end; ++m, sums += kWideSums) {
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
  float* sums = panel.scratch + kPassDepths * kTileElements;
  const std::int64_t row_tiles = wide_row_tiles(panel.k);
  const auto end_of_pass = [&](std::int64_t k) { return k + kWidePass < panel.k ? k + kWidePass : panel.k; };
  for (std::int64_t k = 0; k < panel.k; k += kWidePass) {
    const std::int64_t k_end = end_of_pass(k);
    const int depths = static_cast<int>((k_end - k + kTileDepth - 1) / kTileDepth);
    pack_pass(panel, k, k_end, tiles);
    before_tile_loads();
    WeightsAhead ahead;
    if (k_end < panel.k) {
      ahead = WeightsAhead(panel, 0, k_end, end_of_pass(k_end));
    } else if (panel.followed) {
      ahead = WeightsAhead(panel, panel.n, 0, end_of_pass(0));
    }
    const std::int64_t blocks = (panel.m + 2 * kTileRows - 1) / (2 * kTileRows);
    const std::int64_t lines = (ahead.lines() + blocks * depths - 1) / (blocks * depths);
    for (std::int64_t m = 0; m < panel.m; m += 2 * kTileRows) {
      const std::uint16_t* x = panel.x + m / kTileRows * row_tiles + k / kTileDepth * kTileElements;
      const bool last = k_end == panel.k;
      if (last) expect_writes(panel, m);
      multiply_pass(x, row_tiles, tiles, depths, k == 0, panel.m - m <= kTileRows, ahead, lines, sums + m * kWideSums);
      if (last) write_wide(panel, m, sums + m * kWideSums);
    }
  }
}

}  // namespace
}  // namespace latte
