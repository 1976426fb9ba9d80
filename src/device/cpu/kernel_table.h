#pragma once

#include <cstdint>

#include "plan/dot_rate.h"
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

/// What multiplying with unsigned bytes adds to a Q8 code.
inline constexpr int kQ8Shift = 128;

/// One group of kRows rows of x rounded to codes (tensor/grouped.h), as a product reads it: from one pointer, at
/// constant distances.
template <int kRows>
struct CodeRecord {
  std::int32_t quads[kGroupInputs / 4][kRows];  ///< four codes each
  float scales[kRows];
  std::int32_t q4_offsets[kRows];  ///< -kQ4Zero times the sum of the row's codes
  std::int32_t q8_offsets[kRows];  ///< -kQ8Shift times it
};
/// 32-bit words of a record for each of its rows.
inline constexpr int kCodeWords = kGroupInputs / 4 + 3;
/// Words of all records of so many rows of k inputs.
constexpr std::int64_t code_words(std::int64_t rows, std::int64_t k) { return rows * group_count(k) * kCodeWords; }

/// Rows of x as codes: block by block of KernelTable::code_rows rows, the last of those that are left; within a block,
/// group by group a CodeRecord of as many rows.
struct GroupedRows {
  const std::int32_t* words = nullptr;  ///< [m, groups, kCodeWords]
  std::int64_t groups = 0;

  /// `row` begins a block.
  [[gnu::always_inline]] GroupedRows from(std::int64_t row) const {
    return {words + row * groups * kCodeWords, groups};
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
  const void* following = nullptr;  ///< the weights that the same thread reads next, of as many inputs; null: none
};

/// Groups of the rows of a block to be rounded to codes; the places past n inputs are filled with 0.
struct RoundGroups {
  const float* x = nullptr;
  std::int64_t stride = 0;
  int rows = 0;  ///< at most KernelTable::code_rows
  std::int64_t n = 0;
  std::int64_t groups = 0;
  std::int32_t* to = nullptr;  ///< groups CodeRecords of `rows` rows
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

/// Packed rows as they come: F32 [rows, key_width].
struct QueryRows {
  const float* q = nullptr;
  std::int64_t stride = 0;
  int rows = 0;
  int key_width = 0;
  bool bf16 = false;  ///< for LeafArgs::bf16
};

/// One leaf of the merge tree for a group of packed rows: softmax over keys at cache indices [begin, end).
struct LeafArgs {
  const float* q_KW = nullptr;   ///< from KernelTable::prepare_queries
  int rows = 0;                  ///< packed rows of the group, at most KernelTable::group_rows
  const int* visible = nullptr;  ///< per row, ascending: the row sees cache indices < visible[row]
  LaneRows keys, values;
  bool values_are_keys = false;
  bool bf16 = false;      ///< q, and rows that are not bf16, are rounded to it; where KernelTable::bf16_group_rows > 0
  int first_key_pos = 0;  ///< cache index of key row 0
  int begin = 0, end = 0;
  std::int64_t cached = 0;  ///< key rows that exist: those past `end` may be fetched ahead
  int key_width = 0, value_width = 0;
  float scale_log2 = 1;
  float* scratch = nullptr;  ///< leaf_scratch_floats
  float* o = nullptr;  ///< [rows, value_width]: to be multiplied by the row's share; room for whole vectors of rows
  std::int64_t o_stride = 0;   ///< leaf_stride
  float* shares = nullptr;     ///< [rows]: one over the mass
  float* log2_sums = nullptr;  ///< [rows], -infinity where nothing is seen: o and share are then 0
};

/// What a wide product's weights are: rows [n, k] of bf16, the same by inputs [k, n], or panels of tensor/grouped.h.
enum class WideWeight : unsigned char { kBf16, kBf16ByInput, kQ8, kQ4 };

/// Columns of one wide panel, and inputs of one pass over K.
inline constexpr int kWideSums = 32;
inline constexpr int kWidePass = 512;

/// x of a wide product: bf16 tiles [16 rows][32 inputs][row][input] of rows and inputs, padded with zeros. A tile is
/// one run of memory: rows a power of two apart would share a few lines of the first-level cache, each on its own page.
inline constexpr int kWideTileRows = 16;
inline constexpr int kWideTileInputs = 32;
/// Elements from 16 rows to the next.
constexpr std::int64_t wide_row_tiles(std::int64_t k) {
  return (k + kWideTileInputs - 1) / kWideTileInputs * kWideTileRows * kWideTileInputs;
}
constexpr std::int64_t wide_elements(std::int64_t rows, std::int64_t k) {
  return (rows + kWideTileRows - 1) / kWideTileRows * wide_row_tiles(k);
}

/// Up to 32 weight rows, or with `w_up` 16 of both, times many rows of x rounded to bf16: y[m, n] as ProductPanel says.
/// Reads ahead in the rows that follow them.
struct WidePanel {
  const void* w = nullptr;
  const void* w_up = nullptr;
  WideWeight type = WideWeight::kBf16;
  std::int64_t w_stride = 0;  ///< of bf16 weights
  std::int64_t w_up_stride = 0;
  std::int64_t panel_bytes = 0;      ///< of grouped weights: from one panel of 16 outputs to the next
  const std::uint16_t* x = nullptr;  ///< wide_elements(m, k)
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool followed = false;  ///< as many weight rows come next
  bool accumulate = false;
  float* scratch = nullptr;  ///< wide_scratch_floats
};

/// A loop of one dot instruction over registers alone (dot_loops.h).
struct DotLoop {
  DotType type = DotType::kF32;
  const char* instruction = "";
  int operations = 0;  ///< multiplications and additions of one iteration
  /// At least one iteration; gives what the sums came to, so that no compiler leaves them out.
  float (*run)(std::int64_t iterations) = nullptr;
};

/// The kernels of one instruction set.
struct KernelTable {
  const char* isa = "";
  int vector_width = 1;        ///< floats
  int group_rows = 1;          ///< most packed rows of one attention task
  int bf16_group_rows = 0;     ///< the same where attention multiplies bf16 as such; 0: it does not
  bool bf16_products = false;  ///< few rows of bf16 weights are multiplied with rows of x rounded to bf16
  int code_rows = 1;           ///< rows of x that a product with grouped weights takes at a time
  DotLoop dot_loops[2] = {};   ///< of the instructions that this set adds to narrower ones; `run` is null past the last

  void (*product)(const ProductPanel& panel);
  void (*row_sum)(const RowSumPanel& panel);
  void (*grouped_product)(const GroupedPanel& panel);
  void (*round_groups)(const RoundGroups& groups);
  /// to[0, n) = x rounded to bf16. Null where bf16_products is false.
  void (*round_bf16)(const float* x, std::uint16_t* to, std::int64_t n);
  /// Null where many rows are multiplied like few.
  void (*wide_product)(const WidePanel& panel);
  /// Up to 16 rows of x as a wide product reads them: wide_row_tiles(k) elements. Null where wide_product is.
  void (*wide_rows)(const float* x, std::int64_t stride, int rows, std::int64_t k, std::uint16_t* to);
  /// Packed rows as attend_leaf reads them: [key_width, rows] per vector pair, padded lanes 0. Whole pairs follow each
  /// other query_row_floats a row, so that they can be prepared apart. `to` holds query_floats.
  void (*prepare_queries)(const QueryRows& q, float* to);
  void (*attend_leaf)(const LeafArgs& args);
  /// to[i, :] = the first `width` columns of row first + i as floats, `count` rows without gaps.
  void (*widen_rows)(const LaneRows& from, std::int64_t first, int count, int width, float* to);
  /// to = factor * from.
  void (*scale)(float* to, const float* from, float factor, std::int64_t n);
  /// into = a_weight * into + b_weight * (b_share * b), rounded as every merge of two states is.
  void (*combine)(float* into, const float* b, float b_share, float a_weight, float b_weight, std::int64_t n);
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

/// Floats of WidePanel::scratch for m rows of x: tiles of weights, sums.
constexpr std::int64_t wide_scratch_floats(std::int64_t m) {
  return kWideSums * kWidePass / 2 + (m + kWideSums) * kWideSums;
}

/// Keys that attention on bf16 tiles takes at a time.
inline constexpr int kAmxSpan = 256;

/// Most packed rows of any attention task.
constexpr int most_group_rows(const KernelTable& kernels) {
  return kernels.group_rows > kernels.bf16_group_rows ? kernels.group_rows : kernels.bf16_group_rows;
}

/// Rows that prepared queries come in: a pair of vectors.
constexpr int query_rows(const KernelTable& kernels) { return 2 * kernels.vector_width; }

/// Floats of a prepared row: those of bf16 tiles are whole lines.
constexpr std::int64_t query_row_floats(int key_width, bool bf16) {
  constexpr std::int64_t kLineValues = 32;
  return bf16 ? (key_width + kLineValues - 1) / kLineValues * kLineValues / 2 : key_width;
}

/// Floats of so many prepared rows, whole lines.
constexpr std::int64_t query_floats(const KernelTable& kernels, std::int64_t rows, int key_width, bool bf16) {
  constexpr std::int64_t kLineFloats = 16;
  const std::int64_t pairs = (rows + query_rows(kernels) - 1) / query_rows(kernels);
  const std::int64_t floats = pairs * query_rows(kernels) * query_row_floats(key_width, bf16);
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

/// Floats from one row of a leaf's results to the next: two lines are whole tiles, and a line more, or rows of 512
/// floats would all fall on a few sets of the first-level cache.
constexpr std::int64_t leaf_stride(int value_width) { return (value_width + 31) / 32 * 32 + 16; }

/// Floats of LeafArgs::scratch.
constexpr std::int64_t leaf_scratch_floats(const KernelTable& kernels, int key_width, int value_width) {
  constexpr std::int64_t kPad = 16;
  const std::int64_t rows = most_group_rows(kernels) + kPad;
  const std::int64_t floats = kKeyBlock * (key_width + value_width + 4 * kPad) + (kKeyBlock + 4) * rows;
  if (kernels.bf16_group_rows == 0) return floats;
  const std::int64_t tiles =
      kAmxSpan * ((key_width + 2 * kPad) / 2 + 2 * kPad) + (kAmxSpan + kAmxSpan / 2 + 4) * (rows + kPad) + 5 * kPad;
  return tiles > floats ? tiles : floats;
}

/// Null where this build or processor family has no such instruction set.
const KernelTable* scalar_kernels();
const KernelTable* neon_kernels();
const KernelTable* avx2_kernels();
const KernelTable* avx512_kernels();
const KernelTable* avx512_vnni_kernels();
const KernelTable* avx512_bf16_kernels();
const KernelTable* amx_kernels();

}  // namespace latte
