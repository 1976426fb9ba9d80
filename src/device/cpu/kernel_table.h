#pragma once

#include <cstdint>

#include "plan/kv_chunk.h"
#include "tensor/grouped.h"
#include "tensor/row_format.h"

// What the CPU backend asks of an instruction set. Kernels get raw pointers only: a translation unit compiled for one
// instruction set must not emit inline functions that another unit might be linked against.

namespace latte {

/// A block of weight rows times all rows of x: y[m, n] = sum_k w[n, k] x[m, k], one accumulator layout whatever M is.
/// With `w_up`: y = silu(w x) * (w_up x).
struct ProductPanel {
  const void* w = nullptr;  ///< [n, k], F32 or bf16
  const void* w_up = nullptr;
  std::int64_t w_stride = 0;
  std::int64_t w_up_stride = 0;
  bool w_bf16 = false;
  const void* x = nullptr;  ///< [m, k], F32; bf16 (rounded) only where KernelTable::bf16_products
  std::int64_t x_stride = 0;
  bool x_bf16 = false;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t following =
      0;  ///< weight rows after these that the same thread multiplies next: what may be fetched ahead
  bool accumulate = false;
  float* scratch = nullptr;  ///< product_scratch_floats
};

/// Rows of x rounded to codes, group by group (tensor/grouped.h).
struct GroupedRows {
  const std::int8_t* codes = nullptr;   ///< [m, groups * kGroupInputs]
  const float* scales = nullptr;        ///< [m, groups]
  const std::int32_t* sums = nullptr;   ///< [m, groups]: of each group's codes
  std::int64_t groups = 0;

  [[gnu::always_inline]] GroupedRows from(std::int64_t row) const {
    return {codes + row * groups * kGroupInputs, scales + row * groups, sums + row * groups, groups};
  }
};

/// One panel of a grouped weight times all rows of x: y[m, n] for its n <= kPanelOutputs outputs. With `w_up`:
/// y = silu(w x) * (w_up x).
struct GroupedPanel {
  const void* w = nullptr;
  const void* w_up = nullptr;
  bool four_bits = false;
  GroupedRows x;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0;
  int n = 0;
  bool accumulate = false;
};

/// A row of x to be rounded to codes; the places past its end are filled with 0.
struct RoundRow {
  const float* x = nullptr;
  std::int64_t n = 0;
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  std::int32_t* sums = nullptr;
};

/// Most weight rows of a panel: a multiple of every tile's rows.
inline constexpr int kPanelRows = 24;
/// Columns that one pass over K covers where there are rows enough to compute rather than wait for memory.
inline constexpr int kSumPass = 1024;
/// Rows of x from which expanding a panel of weights once is cheaper than expanding it in every tile.
inline constexpr int kRowsWorthExpanding = 12;

/// y[m, n] = sum_k x[m, k] w[k, n] over n columns: k ascends one by one in every lane.
struct RowSumPanel {
  const void* w = nullptr;  ///< [k, n], F32 or bf16
  std::int64_t w_stride = 0;
  bool w_bf16 = false;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
};

/// How cached rows are stored.
enum class RowType : std::uint8_t { kF32, kBf16, kF16, kQ8 };

/// Rows of keys or values of one lane: row t lies at pages[t / page_rows] + (t % page_rows) * row_stride + lane_offset,
/// in elements; in bytes where the type is kQ8.
struct LaneRows {
  void* const* pages = nullptr;
  std::int64_t page_rows = 1;
  std::int64_t row_stride = 0;
  std::int64_t lane_offset = 0;
  RowType type = RowType::kF32;
  int coded = 0;     ///< kQ8: columns that are codes; scales lie first, then (tensor/row_format.h)
  int exact_at = 0;  ///< bytes to the bf16 columns behind them
  int codes_at = 0;  ///< bytes to the codes
};

/// One leaf of the merge tree for a group of packed rows: softmax over keys at cache indices [begin, end).
struct LeafArgs {
  const float* q_KW = nullptr;   ///< from KernelTable::transpose_queries
  int rows = 0;                  ///< packed rows of the group, at most KernelTable::group_rows
  const int* visible = nullptr;  ///< per row, ascending: the row sees cache indices < visible[row]
  LaneRows keys, values;
  bool values_are_keys = false;
  int first_key_pos = 0;  ///< cache index of key row 0
  int begin = 0, end = 0;
  int key_width = 0, value_width = 0;
  float scale_log2 = 1;
  float* scratch = nullptr;    ///< leaf_scratch_floats
  float* o = nullptr;          ///< [rows, value_width], contiguous: normalised result, 0 where nothing is seen
  float* log2_sums = nullptr;  ///< [rows], -infinity where nothing is seen
};

/// The kernels of one instruction set.
struct KernelTable {
  const char* isa = "";
  int vector_width = 1;  ///< floats
  int group_rows = 1;    ///< most packed rows of one attention task
  bool bf16_products = false;

  void (*product)(const ProductPanel& panel);
  void (*row_sum)(const RowSumPanel& panel);
  void (*grouped_product)(const GroupedPanel& panel);
  void (*round_row)(const RoundRow& row);
  /// q [rows, key_width] to [key_width, rows] per vector pair, padded lanes 0; `to` holds group_rows * key_width
  /// floats.
  void (*transpose_queries)(const float* q, std::int64_t q_stride, int rows, int key_width, float* to);
  void (*attend_leaf)(const LeafArgs& args);
  /// to[i, :] = the first `width` columns of row first + i as floats, `count` rows without gaps.
  void (*widen_rows)(const LaneRows& from, std::int64_t first, int count, int width, float* to);
  /// into = a_weight * into + b_weight * b, rounded as every merge of two states is.
  void (*combine)(float* into, const float* b, float a_weight, float b_weight, std::int64_t n);
  /// y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float* y, std::int64_t n, double eps);
  /// into += weight * x.
  void (*add_scaled)(float* into, const float* x, float weight, std::int64_t n);
};

/// Floats of ProductPanel::scratch for m rows of x: expanded weights, sums carried between passes, the gated block's
/// other factor.
constexpr std::int64_t product_scratch_floats(const KernelTable& kernels, std::int64_t m) {
  constexpr std::int64_t kPad = 16;
  return kPanelRows * (kSumPass + kPad + m * (kernels.vector_width + 1));
}

/// Floats of LeafArgs::scratch.
constexpr std::int64_t leaf_scratch_floats(const KernelTable& kernels, int key_width, int value_width) {
  constexpr std::int64_t kPad = 16;
  return kKeyBlock * (key_width + value_width + 2 * kPad) + (kKeyBlock + 4) * (kernels.group_rows + kPad);
}

/// Null where this build or processor family has no such instruction set.
const KernelTable* scalar_kernels();
const KernelTable* neon_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* avx512_vnni_kernels();
const KernelTable* avx512_bf16_kernels();

}  // namespace latte
