#pragma once

#include <cstdint>

#include "device/cpu/kernel_table.h"

// Cached rows as floats, whatever type they are stored in. A column becomes the same float in every instruction set.

namespace latte {
namespace {

/// Coded columns: block by block code * scale.
template <class S>
void widen_codes(const std::int8_t* codes, const float* scales, int width, float* to) {
  constexpr int kWidth = S::kWidth;
  static_assert(kRowBlock % kWidth == 0, "a block is whole vectors");
  for (int first = 0; first < width; first += kRowBlock) {
    const auto scale = S::set1(scales[first / kRowBlock]);
    const int end = width - first < kRowBlock ? width : first + kRowBlock;
    int k = first;
    for (; k + kWidth <= end; k += kWidth) S::store(to + k, S::mul(S::load_codes(codes + k), scale));
    if (k == end) continue;
    std::int8_t padded[kWidth] = {};
    for (int i = 0; i < end - k; ++i) padded[i] = codes[k + i];
    S::store_first(to + k, S::mul(S::load_codes(padded), scale), end - k);
  }
}

template <class S>
void widen_bf16(const std::uint16_t* bits, int width, float* to) {
  constexpr int kWidth = S::kWidth;
  int k = 0;
  for (; k + kWidth <= width; k += kWidth) S::store(to + k, S::load(bits + k));
  if (k < width) S::store_first(to + k, S::load_first(bits + k, width - k), width - k);
}

template <class S>
void widen_f16(const std::uint16_t* bits, int width, float* to) {
  constexpr int kWidth = S::kWidth;
  int k = 0;
  for (; k + kWidth <= width; k += kWidth) S::store(to + k, S::load_f16(bits + k));
  if (k == width) return;
  std::uint16_t padded[kWidth] = {};
  for (int i = 0; i < width - k; ++i) padded[i] = bits[k + i];
  S::store_first(to + k, S::load_f16(padded), width - k);
}

/// The first `width` columns of row `row` of a page.
template <class S>
void widen_row(const LaneRows& from, const void* page, std::int64_t row, int width, float* to) {
  const std::int64_t offset = row * from.row_stride + from.lane_offset;
  switch (from.type) {
    case RowType::kF32:
      __builtin_memcpy(to, static_cast<const float*>(page) + offset, static_cast<std::size_t>(width) * sizeof(float));
      return;
    case RowType::kBf16:
      widen_bf16<S>(static_cast<const std::uint16_t*>(page) + offset, width, to);
      return;
    case RowType::kF16:
      widen_f16<S>(static_cast<const std::uint16_t*>(page) + offset, width, to);
      return;
    case RowType::kQ8: {
      const auto* piece = static_cast<const unsigned char*>(page) + offset;
      const int coded = width < from.coded ? width : from.coded;
      widen_codes<S>(reinterpret_cast<const std::int8_t*>(piece + from.codes_at), reinterpret_cast<const float*>(piece),
                     coded, to);
      widen_bf16<S>(reinterpret_cast<const std::uint16_t*>(piece + from.exact_at), width - coded, to + coded);
      return;
    }
  }
}

/// KernelTable::widen_rows.
template <class S>
void widen_rows(const LaneRows& from, std::int64_t first, int count, int width, float* to) {
  for (std::int64_t row = first; row < first + count; ++row, to += width)
    widen_row<S>(from, from.pages[row / from.page_rows], row % from.page_rows, width, to);
}

}  // namespace
}  // namespace latte
