#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/softmax_state.h"
#include "latte/error.h"
#include "plan/kv_chunk.h"
#include "plan/step_class.h"
#include "tensor/mat_ref.h"
#include "tensor/row_format.h"

namespace latte {

// The contract between the model and a device: about fifteen operations over matrices in device memory.
//
// Types. Activations (every matrix below that is not called a weight, a key or a value) have the backend's activation
// dtype: F64 on `reference`, F32 on `cpu`. Weights may be F32 or BF16 (reference: also F64, F16). Cached rows and
// workspace keys may be F32, BF16, F16, Q8 (tensor/row_format.h) or F64 as BackendInfo lists. `ids` are int32. Rows. In
// a step of class kDecode the bits of an output row depend on that row's inputs alone: not on how many rows run beside
// it, nor on the thread count. In any step the thread count changes no bit. Memory. Outputs never overlap inputs unless
// an operation says so. What lies past a matrix's last row or column is never read into a result: it may be NaN.
// Operations allocate nothing once they have run with the largest sizes ("after warm-up"). Errors. Sizes that do not
// fit are the caller's mistake (expects). Device failures surface in synchronize(). Threads. A backend runs one
// operation at a time; one caller at a time.

/// Bytes of device memory, 64-byte aligned; freed with the owner.
class DeviceBuffer {
 public:
  using Free = void (*)(void* data, std::size_t bytes);
  DeviceBuffer() = default;
  DeviceBuffer(void* data, std::size_t bytes, Free free) : data_(data), bytes_(bytes), free_(free) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer taken(static_cast<DeviceBuffer&&>(other));
    swap(taken);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr) free_(data_, bytes_);
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(free_, other.free_);
  }

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Free free_ = nullptr;
};

struct BackendInfo {
  std::string name;  ///< "cpu", "reference"
  std::string isa;   ///< "avx2", ...; "double" on reference
  int threads = 1;
  DType activation = DType::kF32;
  DType products = DType::kF32;       ///< what activations are rounded to for products with bf16 weights
  std::vector<DType> cache_dtypes;    ///< what cached rows may be, the natural one first
  std::vector<DType> bf16_rows = {};  ///< cached rows that attention multiplies as bf16, with queries rounded to it
};

/// out[i, :] = scale * table[ids[i], :]; a scale of 1 copies.
struct EmbedArgs {
  ConstMatRef table_VD;  ///< weight
  std::span<const std::int32_t> ids;
  MatRef out_LD;
  double scale = 1;
};

/// y = x / sqrt(mean(x^2) + eps) * weight, row by row; y may be x.
struct RmsNormArgs {
  ConstMatRef x;
  ConstMatRef weight;  ///< weight [1, cols], F32
  double eps = 1e-6;
  MatRef y;
};

/// One product of a matmul: y [L, N] = x [L, K] w [N, K]^T + bias, or y += ... when `accumulate`.
struct Projection {
  ConstMatRef w;
  MatRef y;
  bool accumulate = false;
  ConstMatRef bias = {};  ///< F32 [1, N], or empty
};

/// Several products of the same x (query and latent down-projection, gate and up): one launch.
struct MatmulArgs {
  StepClass step_class = StepClass::kDecode;
  ConstMatRef x;
  std::span<const Projection> projections;
};

/// Which index of a per-head weight is summed over.
enum class HeadSum {
  kCols,  ///< y[l, h, :] = w[h] x[l, h, :]     (w[h] is [N, K])
  kRows,  ///< y[l, h, :] = w[h]^T x[l, h, :]   (w[h] is [K, N]): folds a query through W_UK as it lies on disk
};

/// A product per head. x is [L * H, K] and y [L * H, N], row l * H + h; row strides may exceed the width.
struct HeadMatmulArgs {
  StepClass step_class = StepClass::kDecode;
  ConstMatRef x;
  ConstStackRef w;  ///< weight, count = H
  HeadSum sum = HeadSum::kCols;
  MatRef y;
};

enum class RopeStyle { kInterleaved, kHalfSplit };

/// Rotates x [L * heads, p] in place; row l * heads + h turns by cos/sin [L, p/2] of row l.
struct RopeArgs {
  MatRef x;
  int heads = 1;
  ConstMatRef cos, sin;  ///< activation dtype
  RopeStyle style = RopeStyle::kInterleaved;
};

/// Rows of keys or values: contiguous (one page) or behind a page table. Lane g's row t starts at
/// pages[t / page_rows] + (t % page_rows) * row_stride + first_col + g * lane_stride, in columns; of Q8 rows all of
/// these are whole pieces, and a lane is one piece.
struct KeyRows {
  void* const* pages = nullptr;
  int page_rows = 0;  ///< a power of two, or at least `rows` when there is one page
  std::int64_t row_stride = 0;
  std::int64_t lane_stride = 0;
  int rows = 0;  ///< rows that exist; what lies past them may be anything
  DType dtype = DType::kF32;
  std::int64_t first_col = 0;  ///< where lane 0 starts in a row: values that lie behind the keys
  bool expanded = false;       ///< rows of a step's workspace (expand_latent): activations, rounded where those are
  CodedPiece piece = {};       ///< of Q8 rows

  /// Bytes of neighbouring columns.
  std::int64_t bytes(std::int64_t cols) const { return row_bytes(dtype, piece, cols); }
  void* row(std::int64_t t, std::int64_t lane = 0) const {
    auto* page = static_cast<std::byte*>(pages[t / page_rows]);
    return page + bytes((t % page_rows) * row_stride + first_col + lane * lane_stride);
  }
};

/// `rows` rows of every lane of a step's workspace: one page, `lane_rows` rows of `width` from one lane to the next.
inline KeyRows workspace_rows(void* const* page, DType dtype, int rows, std::int64_t width, std::int64_t lane_rows) {
  return {.pages = page,
          .page_rows = rows,
          .row_stride = width,
          .lane_stride = lane_rows * width,
          .rows = rows,
          .dtype = dtype,
          .expanded = true};
}

/// Writes x [L, width] as rows first_row .. first_row + L - 1 of `rows` from column `first_col` on, rounded to its
/// dtype; a stored row depends on that row of x alone. Of Q8 rows whole pieces are written. The rows lie inside
/// existing pages; rows.rows need not cover them yet.
struct StoreRowsArgs {
  ConstMatRef x;
  KeyRows rows;
  int first_row = 0;
  int first_col = 0;
};

/// Materialises latent rows [begin, end): K[h, i, :] = [w_uk[h] c_i ; k_pe_i], V[h, i, :] = w_uv[h] c_i with
/// row i = begin + i of `latent` = [c (r) | k_pe (p)]. K is [H, end - begin, n + p] and V [H, end - begin, v] as
/// KeyRows of one page, lane = head, dtype F32 (reference: F64). Rows of all three may be wider than what they hold.
struct ExpandArgs {
  KeyRows latent;
  int begin = 0, end = 0;
  ConstStackRef w_uk_Hnr, w_uv_Hvr;
  int rope_width = 0;  ///< p
  KeyRows keys, values;
};

/// One sequence of an attention call.
struct AttendSequence {
  ConstMatRef q_WK;                ///< [W, K] packed rows of lane 0; row w belongs to query w / rows_per_query
  std::int64_t q_lane_stride = 0;  ///< elements from one lane's q to the next
  KeyRows keys;                    ///< [T, >= K]
  KeyRows values;                  ///< [T, >= V]; may be the keys themselves: their first V columns
  int first_key_pos = 0;           ///< cache index of keys row 0
  int first_query_pos = 0;         ///< cache index of query 0; a row sees keys at cache indices <= its own
  std::int64_t first_row = 0;      ///< where this sequence's packed rows start in the partials
};

/// Partial results: slot s, lane g, packed row w of the call holds normalised o [V] and its log-sum.
/// o lies at ((s * lanes + g) * rows + w) * width, log-sums at (s * lanes + g) * rows + w. F32 (reference: F64).
/// An empty slot row has an empty log-sum; its o is not read. A sequence's slots are consecutive, and a device may
/// leave what it has folded of a group (kMergeFanIn) in the group's first slot and the others empty, as merge_partials
/// would.
struct Partials {
  void* o = nullptr;
  void* log2_sums = nullptr;
  DType dtype = DType::kF32;
  int slots = 0;
  int lanes = 0;
  std::int64_t rows = 0;
  int width = 0;
};

/// One launch: every chunk of every lane of every sequence. Chunk bounds are cache indices. Each cached row is read
/// once per lane for all packed rows of a sequence (in tiles). softmax(scale * q.k) with scale_log2 = scale * log2(e).
struct AttendArgs {
  StepClass step_class = StepClass::kDecode;
  std::span<const AttendSequence> sequences;
  int lanes = 1;
  int rows_per_query = 1;
  int key_width = 0;
  int value_width = 0;
  double scale_log2 = 1;
  std::span<const KvChunk> chunks;
  Partials partials;
};

/// Slots that together are the result of some rows of a call.
struct MergeRange {
  int first_slot = 0;
  int slot_count = 0;
  std::int64_t first_row = 0;  ///< packed rows [first_row, first_row + row_count) of the partials
  std::int64_t row_count = 0;
};

/// Folds each range's slots in the fixed tree (kMergeFanIn, each level in order) and writes o [row, V] of lane g,
/// packed row w to out.row(w) + g * out_lane_stride.
struct MergeArgs {
  Partials partials;
  std::span<const MergeRange> ranges;
  MatRef out;
  std::int64_t out_lane_stride = 0;
};

enum class RouterScore { kSoftmax, kSigmoid };
enum class GroupScore { kTop2Sum, kMax };

/// Chooses experts (families 0.5): s = score(logits); c = s + bias; only the best `top_groups` of `groups` stay
/// (left-out groups count as -inf); the `top_k` largest c win, equal values by lowest id; weight = s of the winner,
/// divided by the sum (+ 1e-20) when `normalise`, times `scale`. ids and weights are [L, top_k] in descending order of
/// c.
struct RouteArgs {
  ConstMatRef logits_LE;
  ConstMatRef bias_1E;  ///< F32, or empty
  RouterScore score = RouterScore::kSigmoid;
  GroupScore group_score = GroupScore::kTop2Sum;
  int groups = 1;
  int top_groups = 1;
  int top_k = 1;
  bool normalise = true;
  double scale = 1;
  MatView<std::int32_t> ids_Lk;
  MatRef weights_Lk;
};

/// One gated feed-forward block: down(silu(gate x) * up x).
struct ExpertWeights {
  ConstMatRef gate, up;  ///< [I, D]
  ConstMatRef down;      ///< [D, I]
};

/// y += sum over k, in router order, of weights[l, k] * expert[ids[l, k]](x[l]); then += shared(x[l]) when given. Each
/// chosen expert's weights are read once a step for all its rows. y may not be x.
struct ExpertsArgs {
  StepClass step_class = StepClass::kDecode;
  ConstMatRef x_LD;
  std::span<const ExpertWeights> experts;
  const ExpertWeights* shared = nullptr;
  ConstMatRef weights_Lk;
  MatView<const std::int32_t> ids_Lk;
  MatRef y_LD;
};

/// y += down(silu(gate x) * up x).
struct FfnArgs {
  StepClass step_class = StepClass::kDecode;
  ConstMatRef x_LD;
  ExpertWeights weights;
  MatRef y_LD;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const BackendInfo& info() const = 0;

  /// Uninitialised device memory.
  virtual Result<DeviceBuffer> allocate(std::size_t bytes) = 0;
  /// Host floats to an activation matrix, and back. x is [rows * cols] row by row.
  virtual void upload(std::span<const double> x, MatRef to) = 0;
  virtual void download(ConstMatRef from, std::span<float> x) = 0;
  /// Device to device, same dtype and shape.
  virtual void copy(ConstMatRef from, MatRef to) = 0;
  /// Whole rows [begin, end) of a cache out to host bytes, `width` columns each, as they are stored; and back in.
  virtual void read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) = 0;
  virtual void write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) = 0;

  virtual void embed(const EmbedArgs& args) = 0;
  virtual void rms_norm(const RmsNormArgs& args) = 0;
  virtual void matmul(const MatmulArgs& args) = 0;
  virtual void head_matmul(const HeadMatmulArgs& args) = 0;
  virtual void rope(const RopeArgs& args) = 0;
  virtual void store_rows(const StoreRowsArgs& args) = 0;
  virtual void expand_latent(const ExpandArgs& args) = 0;
  virtual void attend_partial(const AttendArgs& args) = 0;
  virtual void merge_partials(const MergeArgs& args) = 0;
  virtual void route(const RouteArgs& args) = 0;
  virtual void experts(const ExpertsArgs& args) = 0;
  virtual void ffn(const FfnArgs& args) = 0;

  /// Index of the first row holding a NaN or an infinity, or -1.
  virtual std::int64_t first_nonfinite_row(ConstMatRef x) = 0;

  /// Waits for everything launched; the first device failure since the last call.
  virtual Status synchronize() = 0;
};

}  // namespace latte
