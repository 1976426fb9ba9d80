#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "device/cpu/kernel_table.h"
#include "device/cpu/product_launch.h"
#include "device/cpu/scratch.h"

namespace latte {

/// How the processor is used.
struct CpuOptions {
  std::string isa = "auto";  ///< "auto", "scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"
  int threads = 0;           ///< 0: one per physical core available to the process
  /// kBf16: where the instruction set multiplies bf16 pairs, activations are rounded to bf16 for products with bf16
  /// weights. kF32, and every other instruction set: bf16 weights are expanded exactly and multiplied in f32.
  DType compute = DType::kF32;
};

/// The processor. Activations are F32; weights F32, BF16, Q8 or Q4 (those per head F32 or BF16); cached rows BF16, F32,
/// F16 or Q8; partials F32. The instruction set is chosen once at open; within one, equal inputs give equal bits
/// whatever the thread count.
class CpuBackend final : public Backend {
 public:
  /// Errors: an instruction set the processor lacks, an impossible thread count, a compute type other than F32 or BF16.
  static Result<std::unique_ptr<Backend>> open(const CpuOptions& options);

  const BackendInfo& info() const override { return info_; }

  Result<DeviceBuffer> allocate(std::size_t bytes) override;
  void upload(std::span<const double> x, MatRef to) override;
  void download(ConstMatRef from, std::span<float> x) override;
  void copy(ConstMatRef from, MatRef to) override;
  void read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) override;
  void write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) override;

  void embed(const EmbedArgs& args) override;
  void rms_norm(const RmsNormArgs& args) override;
  void matmul(const MatmulArgs& args) override;
  void head_matmul(const HeadMatmulArgs& args) override;
  void rope(const RopeArgs& args) override;
  void store_rows(const StoreRowsArgs& args) override;
  void expand_latent(const ExpandArgs& args) override;
  void attend_partial(const AttendArgs& args) override;
  void merge_partials(const MergeArgs& args) override;
  void route(const RouteArgs& args) override;
  void experts(const ExpertsArgs& args) override;
  void ffn(const FfnArgs& args) override;

  std::int64_t first_nonfinite_row(ConstMatRef x) override;
  Status synchronize() override { return {}; }

 private:
  /// A slot of attend_partial's partials and where it stands in the merge tree.
  struct AttendSlot {
    int first_chunk = 0;  ///< into chunk_order_
    int chunk_count = 1;
    int sequence = 0;
    int slot = 0;
    int place = 0;      ///< in its group of kMergeFanIn
    bool leaf = false;  ///< it and those of its group before it are one leaf each
  };
  /// One task of attend_partial: a group of packed rows of one lane over all chunks of one slot.
  struct AttendTask {
    int first_chunk = 0;  ///< into chunk_order_
    int chunk_count = 0;
    int lane = 0;
    int first_row = 0;
    int rows = 0;
    int slot = 0;          ///< of its chunks
    int result_slot = 0;   ///< where its result goes: its own slot, or that of the first leaf of its group
    int leaf_before = -1;  ///< the task of the same rows and the leaf before, where both belong to one group
  };
  /// Packed rows of one lane.
  struct QueryGroup {
    int sequence = 0;
    int lane = 0;
    int first_row = 0;
    int rows = 0;
  };
  /// Rows of x in the forms that a product's weights multiply.
  struct ProductRows {
    const float* x = nullptr;
    std::int64_t stride = 0;
    const std::uint16_t* bf16 = nullptr;  ///< where a bf16 weight asks for it
    std::int64_t bf16_stride = 0;
    GroupedRows codes = {};                ///< of the product's own rows, where a grouped weight asks for it
    const std::uint16_t* tiles = nullptr;  ///< as WidePanel::x: of the product's own rows, where many rows ask for it
  };
  /// Up to 16 rows of x that become tiles.
  struct TileRows {
    const float* x = nullptr;
    std::int64_t stride = 0;
    int rows = 0;
    std::int64_t cols = 0;
    std::uint16_t* to = nullptr;
  };
  /// The rows that chose one expert, or all rows for the shared one.
  struct ExpertRows {
    const ExpertWeights* weights = nullptr;
    std::int64_t first = 0;  ///< into the packed rows
    std::int64_t count = 0;
    std::int64_t first_hidden = 0;  ///< floats before its hidden rows
    ProductRows hidden;
  };

  CpuBackend(const KernelTable& kernels, std::unique_ptr<ThreadPool> pool, bool multiply_bf16);

  /// Calls fn(row, thread) for every row; on all threads when there is work for them.
  template <class Fn>
  void for_rows(std::int64_t rows, std::int64_t cost_per_row, Fn&& fn);

  /// Whether few rows of x are rounded to bf16 for such a weight.
  bool rounds(DType weight) const { return multiply_bf16_ && kernels_.bf16_products && weight == DType::kBf16; }
  /// x as dense bf16 rows, valid until the next call.
  const std::uint16_t* rounded(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols);
  /// Whether `count` rows of a step are multiplied with such a weight by the kernel for many rows. Decode-class rows
  /// never are: their bits would hang on how many there are.
  bool wide(StepClass step_class, DType weight, std::int64_t count) const;
  /// Adds to `rows` the form that `weight` asks for, unless it is there; `count` rows of `cols`. Valid until the next
  /// rows of that form are made.
  void add_form(ProductRows& rows, DType weight, bool wide, std::int64_t count, std::int64_t cols);
  /// Has `rows` of x as tiles after the next make_tiles(), from `at` on; moves it past them.
  const std::uint16_t* list_tiles(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                                  std::uint16_t*& at);
  void make_tiles();
  /// The same of codes: after the next make_codes().
  GroupedRows list_codes(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols, std::int32_t*& at);
  void make_codes();
  /// A product of rows [first, first + count) of `rows`, which have the form that the weight asks for.
  ProductJob product_job(const ConstMatRef& w, const ConstMatRef* w_up, const ProductRows& rows, bool wide,
                         std::int64_t first, std::int64_t count, MatView<float> y) const;

  bool multiplies_bf16(const AttendArgs& args) const;
  void list_slots(const AttendArgs& args);
  void list_attend_tasks(const AttendArgs& args);
  void fold_leaves_of_threads();
  /// Floats before a group among queries that are prepared for all tasks.
  std::int64_t query_place(const AttendArgs& args, const QueryGroup& group) const;
  void prepare_group(const AttendArgs& args, const QueryGroup& group, float* to) const;
  void prepare_shared_queries(const AttendArgs& args);
  void run_attend_task(const AttendArgs& args, const AttendTask& task, Scratch& scratch) const;
  void merge_row(const MergeArgs& args, const MergeRange& range, std::int64_t row, int lane, Scratch& scratch) const;
  void route_row(const RouteArgs& args, std::int64_t row, Scratch& scratch) const;
  void group_by_expert(const ExpertsArgs& args);
  void add_hidden_forms(StepClass step_class, const float* hidden);

  BackendInfo info_;
  const KernelTable& kernels_;
  std::unique_ptr<ThreadPool> pool_;
  bool multiply_bf16_ = false;
  ProductLauncher products_;

  std::vector<ProductJob> jobs_;
  std::vector<RowSumJob> row_sum_jobs_;
  std::vector<TileRows> tile_rows_;
  std::vector<RoundGroups> code_groups_;
  std::vector<Scratch> thread_scratch_;
  Scratch codes_, rounded_, tiles_, packed_x_, hidden_, expert_out_, latent_;
  std::vector<int> chunk_order_;
  std::vector<AttendSlot> attend_slots_;
  std::vector<AttendTask> attend_tasks_;
  bool attend_bf16_ = false;     ///< the call multiplies queries and rows as bf16
  std::vector<int> first_task_;  ///< per thread, and the end
  int prepared_rows_ = 0;        ///< of a piece: no group of rows ends within one
  Scratch query_memory_;
  float* queries_ = nullptr;
  std::vector<std::int64_t> first_query_;  ///< per sequence, into queries_; empty: every task prepares its own
  std::vector<QueryGroup> query_groups_;
  std::vector<ExpertRows> expert_rows_;
  std::vector<std::int64_t> rows_of_expert_;  ///< per expert: rows, then where the next goes
  std::vector<std::int64_t> packed_row_;      ///< per (row, choice): its place among the packed rows
};

template <class Fn>
void CpuBackend::for_rows(std::int64_t rows, std::int64_t cost_per_row, Fn&& fn) {
  constexpr std::int64_t kInlineCost = 1 << 16;  // about the elements that one thread copies in the time of a wake-up
  const int parts = rows * cost_per_row < kInlineCost ? 1 : pool_->threads();
  pool_->run(parts, [&](int part, int thread) {
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) fn(row, thread);
  });
}

}  // namespace latte
