#pragma once

#include "backend/backend.h"
#include "device/cpu/kernel_table.h"

namespace latte {

/// What cached rows on this device may be.
inline bool is_cached_type(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16 || dtype == DType::kQ8;
}

/// One lane of cached rows as kernels see it; they stay where they are.
inline LaneRows lane_rows(const KeyRows& rows, int lane) {
  expects(is_cached_type(rows.dtype), "cached rows on cpu are F32, BF16, F16 or Q8");
  const bool coded = rows.dtype == DType::kQ8;
  const std::int64_t lane_offset = rows.first_col + lane * rows.lane_stride;
  return {.pages = rows.pages,
          .page_rows = rows.page_rows,
          .row_stride = coded ? rows.bytes(rows.row_stride) : rows.row_stride,
          .lane_offset = coded ? rows.bytes(lane_offset) : lane_offset,
          .type = coded                        ? RowType::kQ8
                  : rows.dtype == DType::kF32  ? RowType::kF32
                  : rows.dtype == DType::kBf16 ? RowType::kBf16
                                               : RowType::kF16,
          .coded = rows.piece.coded,
          .exact_at = rows.piece.exact_at(),
          .codes_at = rows.piece.codes_at()};
}

}  // namespace latte
