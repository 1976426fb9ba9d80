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

/// kRows weight rows times kCount rows of x. Lane j of an accumulator sums k = j mod the step in ascending order, then
/// one fold: the order is that of a tile of one row and one weight row, so tiles change no bit.
template <class S, class Dot, int kRows, int kCount, class W, class X>
void dot_tile(const W* w, std::int64_t w_stride, const X* x, std::int64_t x_stride, std::int64_t k_count, float* y,
              std::int64_t y_stride, bool accumulate) {
  typename S::Vec sums[kCount][kRows];
  for (int m = 0; m < kCount; ++m) {
    for (int n = 0; n < kRows; ++n) sums[m][n] = S::zero();
  }
  std::int64_t k = 0;
  for (; k + Dot::kStep <= k_count; k += Dot::kStep) {
    typename Dot::Operand columns[kCount];
    for (int m = 0; m < kCount; ++m) columns[m] = Dot::load(x + m * x_stride + k);
    for (int n = 0; n < kRows; ++n) {
      const typename Dot::Operand weights = Dot::load(w + n * w_stride + k);
      for (int m = 0; m < kCount; ++m) sums[m][n] = Dot::multiply_add(weights, columns[m], sums[m][n]);
    }
  }
  if (k < k_count) {
    const int rest = static_cast<int>(k_count - k);
    typename Dot::Operand columns[kCount];
    for (int m = 0; m < kCount; ++m) columns[m] = Dot::load_first(x + m * x_stride + k, rest);
    for (int n = 0; n < kRows; ++n) {
      const typename Dot::Operand weights = Dot::load_first(w + n * w_stride + k, rest);
      for (int m = 0; m < kCount; ++m) sums[m][n] = Dot::multiply_add(weights, columns[m], sums[m][n]);
    }
  }
  for (int m = 0; m < kCount; ++m) {
    for (int n = 0; n < kRows; ++n) {
      const float sum = S::hsum(sums[m][n]);
      float* to = y + m * y_stride + n;
      *to = accumulate ? *to + sum : sum;
    }
  }
}

/// All weight rows of a panel times kCount rows of x.
template <class S, class Dot, int kCount, class W, class X>
void dot_rows(const W* w, std::int64_t w_stride, const X* x, const ProductPanel& panel, float* y, std::int64_t y_stride,
              bool accumulate) {
  constexpr int kRows = S::kWeightRows[kCount];
  std::int64_t n = 0;
  for (; n + kRows <= panel.n; n += kRows) {
    dot_tile<S, Dot, kRows, kCount>(w + n * w_stride, w_stride, x, panel.x_stride, panel.k, y + n, y_stride,
                                    accumulate);
  }
  for (; n + 2 <= panel.n; n += 2) {
    dot_tile<S, Dot, 2, kCount>(w + n * w_stride, w_stride, x, panel.x_stride, panel.k, y + n, y_stride, accumulate);
  }
  if (n < panel.n) {
    dot_tile<S, Dot, 1, kCount>(w + n * w_stride, w_stride, x, panel.x_stride, panel.k, y + n, y_stride, accumulate);
  }
}

/// All weight rows of a panel times all rows of x, up to four rows at a time; 5 rows are 3 + 2 rather than 4 + 1.
template <class S, class Dot, class W, class X>
void dot_panel(const W* w, std::int64_t w_stride, const X* x, const ProductPanel& panel, float* y,
               std::int64_t y_stride, bool accumulate) {
  for (std::int64_t m = 0; m < panel.m;) {
    const std::int64_t left = panel.m - m;
    const X* rows = x + m * panel.x_stride;
    float* to = y + m * y_stride;
    if (left >= 4 && left != 5) {
      dot_rows<S, Dot, 4>(w, w_stride, rows, panel, to, y_stride, accumulate);
      m += 4;
    } else if (left >= 3) {
      dot_rows<S, Dot, 3>(w, w_stride, rows, panel, to, y_stride, accumulate);
      m += 3;
    } else if (left == 2) {
      dot_rows<S, Dot, 2>(w, w_stride, rows, panel, to, y_stride, accumulate);
      m += 2;
    } else {
      dot_rows<S, Dot, 1>(w, w_stride, rows, panel, to, y_stride, accumulate);
      m += 1;
    }
  }
}

/// Rows of x from which expanding a panel of bf16 weights once is cheaper than expanding it per tile.
inline constexpr int kExpandRows = 8;

template <class S>
void expand_panel(const std::uint16_t* w, std::int64_t w_stride, std::int64_t n, std::int64_t k_count, float* to) {
  constexpr int kWidth = S::kWidth;
  for (std::int64_t row = 0; row < n; ++row) {
    const std::uint16_t* from = w + row * w_stride;
    std::int64_t k = 0;
    for (; k + kWidth <= k_count; k += kWidth) S::store(to + k, S::load(from + k));
    if (k < k_count) {
      const int rest = static_cast<int>(k_count - k);
      S::store_first(to + k, S::load_first(from + k, rest), rest);
    }
    to += k_count;
  }
}

/// One weight matrix of a panel; `Bf16Dot` multiplies bf16 weights with rounded rows of x.
template <class S, class Bf16Dot>
void multiply(const void* w, std::int64_t w_stride, const ProductPanel& panel, float* y, std::int64_t y_stride,
              bool accumulate) {
  if (!panel.w_bf16) {
    dot_panel<S, FloatDot<S>>(static_cast<const float*>(w), w_stride, static_cast<const float*>(panel.x), panel, y,
                              y_stride, accumulate);
    return;
  }
  const auto* weights = static_cast<const std::uint16_t*>(w);
  if (panel.x_bf16) {
    if constexpr (!__is_same(Bf16Dot, FloatDot<S>)) {
      dot_panel<S, Bf16Dot>(weights, w_stride, static_cast<const std::uint16_t*>(panel.x), panel, y, y_stride,
                            accumulate);
    }
  } else if (panel.m < kExpandRows) {
    dot_panel<S, FloatDot<S>>(weights, w_stride, static_cast<const float*>(panel.x), panel, y, y_stride, accumulate);
  } else {
    expand_panel<S>(weights, w_stride, panel.n, panel.k, panel.scratch);
    dot_panel<S, FloatDot<S>>(static_cast<const float*>(panel.scratch), panel.k, static_cast<const float*>(panel.x),
                              panel, y, y_stride, accumulate);
  }
}

template <class S, class Bf16Dot>
void product(const ProductPanel& panel) {
  multiply<S, Bf16Dot>(panel.w, panel.w_stride, panel, panel.y, panel.y_stride, panel.accumulate);
  if (panel.w_up == nullptr) return;
  float* up = panel.scratch + panel.n * panel.k;
  multiply<S, Bf16Dot>(panel.w_up, panel.w_up_stride, panel, up, panel.n, false);
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
