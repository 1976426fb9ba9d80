#pragma once

#include <cstdint>

#include "device/cpu/kernel_table.h"
#include "device/cpu/row_kernels.h"

namespace latte {
namespace {

/// Dot products in f32: bf16 weights are expanded exactly.
template <class S>
struct FloatDot {
  using Vec = typename S::Vec;
  using Operand = Vec;
  static constexpr int kStep = S::kWidth;
  template <class T>
  static Operand load(const T* p) {
    return S::load(p);
  }
  template <class T>
  static Operand load_first(const T* p, int n) {
    return S::load_first(p, n);
  }
  static Vec multiply_add(Operand a, Operand b, Vec sum) { return S::fma(a, b, sum); }
};

/// The part of K that a pass covers; sums go on from `carried` unless it is the first, and stay there unless it is the
/// last.
struct SumRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool first = true;
  bool last = true;
};

/// Where the sums of a tile of y go.
struct TileOutput {
  float* y = nullptr;
  std::int64_t y_stride = 0;
  bool accumulate = false;
};

/// One step of a tile: a vector of every weight row times a vector of every row of x. `rest` > 0: only so many elements
/// are there.
template <class S, class Dot, int kRows, int kCount, class W, class X>
[[gnu::always_inline]] inline void dot_step(const W* w, std::int64_t w_stride, const X* x, std::int64_t x_stride,
                                            int rest, typename S::Vec (&sums)[kCount][kRows]) {
  const auto weights = [&](int n) {
    return rest > 0 ? Dot::load_first(w + n * w_stride, rest) : Dot::load(w + n * w_stride);
  };
  const auto column = [&](int m) {
    return rest > 0 ? Dot::load_first(x + m * x_stride, rest) : Dot::load(x + m * x_stride);
  };
  // The fewer of the two stay in registers beside the sums.
  if constexpr (kRows < kCount) {
    typename Dot::Operand held[kRows];
    for (int n = 0; n < kRows; ++n) held[n] = weights(n);
    for (int m = 0; m < kCount; ++m) {
      const auto other = column(m);
      for (int n = 0; n < kRows; ++n) sums[m][n] = Dot::multiply_add(held[n], other, sums[m][n]);
    }
  } else {
    typename Dot::Operand held[kCount];
    for (int m = 0; m < kCount; ++m) held[m] = column(m);
    for (int n = 0; n < kRows; ++n) {
      const auto other = weights(n);
      for (int m = 0; m < kCount; ++m) sums[m][n] = Dot::multiply_add(other, held[m], sums[m][n]);
    }
  }
}

/// Bytes of weights that are asked for before a tile needs them: about what memory delivers while it answers. One row
/// of x leaves a tile twice as fast as two do.
template <int kCount>
inline constexpr std::int64_t kAheadBytes = kCount == 1 ? 12288 : 6144;

/// Weight rows between a tile and the one asked for: whole tiles.
template <int kRows, int kCount, class W>
std::int64_t rows_ahead(std::int64_t w_stride) {
  const std::int64_t tile_bytes = kRows * w_stride * static_cast<std::int64_t>(sizeof(W));
  const std::int64_t tiles = kAheadBytes<kCount> / (tile_bytes > 0 ? tile_bytes : 1);
  return kRows * (tiles < 1 ? 1 : tiles);
}

/// kRows weight rows times kCount rows of x. Lane j of an accumulator sums k = j mod the step in ascending order, then
/// one fold: the order is that of a tile of one row and one weight row, so neither tiles nor passes over K change a
/// bit.
/// `next`: the weights come from memory, so this tile of rows to come is asked for on the way; null when there is none.
template <class S, class Dot, int kRows, int kCount, class W, class X>
void dot_tile(const W* w, std::int64_t w_stride, const W* next, const X* x, std::int64_t x_stride,
              const SumRange& range, float* carried, const TileOutput& out) {
  constexpr int kUnroll = 4;
  constexpr int kStep = Dot::kStep;
  constexpr int kLine = 64 / static_cast<int>(sizeof(W));
  typename S::Vec sums[kCount][kRows];
  for (int m = 0; m < kCount; ++m) {
    for (int n = 0; n < kRows; ++n)
      sums[m][n] = range.first ? S::zero() : S::load(carried + (m * kRows + n) * S::kWidth);
  }
  const bool whole_rows = range.first && range.last;  // then in memory order
  const std::int64_t next_k = whole_rows ? kRows : 1;
  const std::int64_t next_n = whole_rows ? kUnroll * kStep : w_stride;
  std::int64_t k = range.begin;
  for (; k + kUnroll * kStep <= range.end; k += kUnroll * kStep) {
    // Short rows end before the processor's own prefetch gets going.
    for (int n = 0; next != nullptr && n < kRows; ++n) {
      for (int ahead = 0; ahead < kUnroll * kStep; ahead += kLine) S::prefetch(next + k * next_k + n * next_n + ahead);
    }
    for (int step = 0; step < kUnroll; ++step) {
      dot_step<S, Dot, kRows, kCount>(w + k + step * kStep, w_stride, x + k + step * kStep, x_stride, 0, sums);
    }
  }
  for (; k + kStep <= range.end; k += kStep) dot_step<S, Dot, kRows, kCount>(w + k, w_stride, x + k, x_stride, 0, sums);
  if (k < range.end) {
    dot_step<S, Dot, kRows, kCount>(w + k, w_stride, x + k, x_stride, static_cast<int>(range.end - k), sums);
  }
  for (int m = 0; m < kCount; ++m) {
    for (int n = 0; n < kRows; ++n) {
      if (!range.last) {
        S::store(carried + (m * kRows + n) * S::kWidth, sums[m][n]);
        continue;
      }
      const float sum = S::hsum(sums[m][n]);
      float* to = out.y + m * out.y_stride + n;
      *to = out.accumulate ? *to + sum : sum;
    }
  }
}

/// All `n` weight rows of a panel times kCount rows of x. `following` rows come after the panel's own.
template <class S, class Dot, bool kAhead, int kCount, class W, class X>
void dot_rows(const W* w, std::int64_t w_stride, std::int64_t n_count, const X* x, std::int64_t x_stride,
              std::int64_t following, const SumRange& range, float* carried, TileOutput out) {
  constexpr int kRows = S::kWeightRows[kCount];
  const std::int64_t distance = rows_ahead<kRows, kCount, W>(w_stride);
  std::int64_t n = 0;
  const auto advance = [&](int rows) {
    n += rows;
    w += rows * w_stride;
    carried += rows * kCount * S::kWidth;
    out.y += rows;
  };
  while (n + kRows <= n_count) {
    const bool more = kAhead && n + distance + kRows <= n_count + following;
    dot_tile<S, Dot, kRows, kCount>(w, w_stride, more ? w + distance * w_stride : nullptr, x, x_stride, range, carried,
                                    out);
    advance(kRows);
  }
  while (n + 2 <= n_count) {
    dot_tile<S, Dot, 2, kCount, W>(w, w_stride, nullptr, x, x_stride, range, carried, out);
    advance(2);
  }
  if (n < n_count) dot_tile<S, Dot, 1, kCount, W>(w, w_stride, nullptr, x, x_stride, range, carried, out);
}

/// All weight rows of a panel times all rows of x: eight at a time where a set has registers for them, which widens a
/// weight half as often, then up to four; 5 rows are 3 + 2 rather than 4 + 1.
template <class S, class Dot, bool kAhead, class W, class X>
void dot_pass(const W* w, std::int64_t w_stride, const X* x, const ProductPanel& panel, const SumRange& range,
              float* carried, TileOutput out) {
  std::int64_t m = 0;
  const auto multiply_rows = [&]<int kCount>() {
    dot_rows<S, Dot, kAhead, kCount>(w, w_stride, panel.n, x, panel.x_stride, panel.following, range, carried, out);
    m += kCount;
    x += kCount * panel.x_stride;
    carried += kCount * panel.n * S::kWidth;
    out.y += kCount * out.y_stride;
  };
  if constexpr (kAhead && S::kWeightRows[8] > 0) {
    while (panel.m - m >= 8) multiply_rows.template operator()<8>();
  }
  while (m < panel.m) {
    const std::int64_t left = panel.m - m;
    if (left >= 4 && left != 5) {
      multiply_rows.template operator()<4>();
    } else if (left >= 3) {
      multiply_rows.template operator()<3>();
    } else if (left == 2) {
      multiply_rows.template operator()<2>();
    } else {
      multiply_rows.template operator()<1>();
    }
  }
}

/// Distance of expanded rows: not a multiple of the first-level cache's ways, or rows would push each other out.
inline constexpr std::int64_t kExpandedStride = kSumPass + 16;

/// Columns [range.begin, range.end) of a panel's weights as f32.
template <class S, class W>
void expand_panel(const W* w, std::int64_t w_stride, std::int64_t n, const SumRange& range, float* to) {
  constexpr int kWidth = S::kWidth;
  for (std::int64_t row = 0; row < n; ++row) {
    const W* from = w + row * w_stride;
    float* at = to + row * kExpandedStride;
    std::int64_t k = range.begin;
    for (; k + kWidth <= range.end; k += kWidth, at += kWidth) {
      S::prefetch(from + k + w_stride);
      S::store(at, S::load(from + k));
    }
    if (k < range.end) {
      const int rest = static_cast<int>(range.end - k);
      S::store_first(at, S::load_first(from + k, rest), rest);
    }
  }
}

/// Calls pass(range) over K in passes short enough for rows of x to stay in the first-level cache. Few rows go in one
/// pass: they wait for memory, which likes long reads.
template <class Pass>
void for_passes(const ProductPanel& panel, const Pass& pass) {
  const std::int64_t step = panel.m < 3 ? panel.k : kSumPass;
  if (panel.k == 0) pass(SumRange{});
  for (std::int64_t begin = 0; begin < panel.k; begin += step) {
    const std::int64_t end = begin + step < panel.k ? begin + step : panel.k;
    pass(SumRange{begin, end, begin == 0, end == panel.k});
  }
}

template <class S, class Dot, class W, class X>
void dot_panel(const W* w, std::int64_t w_stride, const X* x, const ProductPanel& panel, const TileOutput& out) {
  float* carried = panel.scratch + kPanelRows * kExpandedStride;
  for_passes(panel, [&](const SumRange& range) { dot_pass<S, Dot, true>(w, w_stride, x, panel, range, carried, out); });
}

template <class S, class W>
void dot_expanded_panel(const W* w, std::int64_t w_stride, const ProductPanel& panel, const TileOutput& out) {
  float* carried = panel.scratch + kPanelRows * kExpandedStride;
  for_passes(panel, [&](const SumRange& range) {
    expand_panel<S>(w, w_stride, panel.n, range, panel.scratch);
    const SumRange pass{0, range.end - range.begin, range.first, range.last};
    const float* x = static_cast<const float*>(panel.x) + range.begin;
    dot_pass<S, FloatDot<S>, false>(static_cast<const float*>(panel.scratch), kExpandedStride, x, panel, pass, carried,
                                    out);
  });
}

/// One weight matrix of a panel times f32 rows.
template <class S, class W>
void multiply_floats(const W* w, std::int64_t w_stride, const ProductPanel& panel, const TileOutput& out) {
  if (panel.m < kRowsWorthExpanding) {
    dot_panel<S, FloatDot<S>>(w, w_stride, static_cast<const float*>(panel.x), panel, out);
  } else {
    dot_expanded_panel<S>(w, w_stride, panel, out);
  }
}

/// One weight matrix of a panel; `Bf16Dot` multiplies bf16 weights with rounded rows of x.
template <class S, class Bf16Dot>
void multiply(const void* w, std::int64_t w_stride, const ProductPanel& panel, const TileOutput& out) {
  if (!panel.w_bf16) {
    multiply_floats<S>(static_cast<const float*>(w), w_stride, panel, out);
  } else if (!panel.x_bf16) {
    multiply_floats<S>(static_cast<const std::uint16_t*>(w), w_stride, panel, out);
  } else if constexpr (!__is_same(Bf16Dot, FloatDot<S>)) {
    dot_panel<S, Bf16Dot>(static_cast<const std::uint16_t*>(w), w_stride, static_cast<const std::uint16_t*>(panel.x),
                          panel, out);
  }
}

template <class S, class Bf16Dot>
void product(const ProductPanel& panel) {
  multiply<S, Bf16Dot>(panel.w, panel.w_stride, panel, {panel.y, panel.y_stride, panel.accumulate});
  if (panel.w_up == nullptr) return;
  float* up = panel.scratch + kPanelRows * kExpandedStride + panel.m * panel.n * S::kWidth;
  multiply<S, Bf16Dot>(panel.w_up, panel.w_up_stride, panel, {up, panel.n, false});
  for (std::int64_t m = 0; m < panel.m; ++m) gate_rows<S>(panel.y + m * panel.y_stride, up + m * panel.n, panel.n);
}

/// kVecs column vectors times kCount rows of x, k one by one. `rest` > 0 makes the single vector a partial one.
template <class S, int kVecs, int kCount, class W>
void row_sum_tile(const W* w, const RowSumPanel& panel, const float* x, float* y, int rest) {
  typename S::Vec sums[kCount][kVecs];
  for (int m = 0; m < kCount; ++m) {
    for (int v = 0; v < kVecs; ++v) sums[m][v] = S::zero();
  }
  for (std::int64_t k = 0; k < panel.k; ++k) {
    typename S::Vec weights[kVecs];
    for (int v = 0; v < kVecs; ++v) weights[v] = rest > 0 ? S::load_first(w, rest) : S::load(w + v * S::kWidth);
    for (int m = 0; m < kCount; ++m) {
      const auto factor = S::set1(x[m * panel.x_stride + k]);
      for (int v = 0; v < kVecs; ++v) sums[m][v] = S::fma(factor, weights[v], sums[m][v]);
    }
    w += panel.w_stride;
  }
  for (int m = 0; m < kCount; ++m) {
    for (int v = 0; v < kVecs; ++v) {
      float* to = y + m * panel.y_stride + v * S::kWidth;
      if (rest > 0) {
        S::store_first(to, sums[m][v], rest);
      } else {
        S::store(to, sums[m][v]);
      }
    }
  }
}

template <class S, int kCount, class W>
void row_sum_rows(const RowSumPanel& panel, const float* x, float* y) {
  constexpr int kVecs = S::kRowSumVecs[kCount];
  constexpr int kWidth = S::kWidth;
  const auto* w = static_cast<const W*>(panel.w);
  std::int64_t n = 0;
  for (; n + kVecs * kWidth <= panel.n; n += kVecs * kWidth) row_sum_tile<S, kVecs, kCount>(w + n, panel, x, y + n, 0);
  for (; n + kWidth <= panel.n; n += kWidth) row_sum_tile<S, 1, kCount>(w + n, panel, x, y + n, 0);
  if (n < panel.n) row_sum_tile<S, 1, kCount>(w + n, panel, x, y + n, static_cast<int>(panel.n - n));
}

template <class S, class W>
void row_sum_panel(const RowSumPanel& panel) {
  std::int64_t m = 0;
  for (; m + 4 <= panel.m; m += 4) {
    row_sum_rows<S, 4, W>(panel, panel.x + m * panel.x_stride, panel.y + m * panel.y_stride);
  }
  const float* x = panel.x + m * panel.x_stride;
  float* y = panel.y + m * panel.y_stride;
  if (panel.m - m == 3) row_sum_rows<S, 3, W>(panel, x, y);
  if (panel.m - m == 2) row_sum_rows<S, 2, W>(panel, x, y);
  if (panel.m - m == 1) row_sum_rows<S, 1, W>(panel, x, y);
}

template <class S>
void row_sum(const RowSumPanel& panel) {
  if (panel.w_bf16) {
    row_sum_panel<S, std::uint16_t>(panel);
  } else {
    row_sum_panel<S, float>(panel);
  }
}

}  // namespace
}  // namespace latte
