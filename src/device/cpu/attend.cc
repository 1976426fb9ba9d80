#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/cpu/cpu_backend.h"
#include "device/cpu/fold.h"
#include "device/cpu/lane_rows.h"

// Attention over a list of chunks: one task per (sequence, slot, lane, group of packed rows).

namespace latte {
namespace {

bool same_rows(const KeyRows& a, const KeyRows& b) {
  return a.pages == b.pages && a.page_rows == b.page_rows && a.row_stride == b.row_stride &&
         a.lane_stride == b.lane_stride && a.first_col == b.first_col && a.dtype == b.dtype && a.piece == b.piece;
}

/// Cached rows of F32 and F16 keep what they hold; those of a workspace are activations, and codes have fewer digits
/// than bf16.
bool may_be_bf16(const KeyRows& rows, const std::vector<DType>& bf16_rows) {
  return std::find(bf16_rows.begin(), bf16_rows.end(), rows.dtype) != bf16_rows.end() ||
         (rows.dtype == DType::kF32 && rows.expanded);
}

/// Floats from one row of a leaf's results to the next: a line more than whole lines, or rows of 512 floats would all
/// fall on a few sets of the first-level cache.
std::int64_t leaf_stride(int value_width) { return (value_width + 15) / 16 * 16 + 16; }

/// Finds a slot's neighbour in the merge tree, for slots in ascending order.
class LeafGroups {
 public:
  /// The first task of the slot before, where both slots are single leaves of one group; else -1. `first_task`: of this
  /// slot, whose tasks are as many.
  int tasks_of_leaf_before(const KvChunk& head, int chunk_count, int first_task) {
    const bool follows = head.sequence == sequence_ && head.slot == slot_ + 1;
    place_ = follows ? (place_ + 1) % kMergeFanIn : 0;
    const bool leaf = chunk_count == 1 && head.opens_slot && (place_ == 0 || leaves_);
    const int before = leaf && place_ > 0 ? first_task_ : -1;
    sequence_ = head.sequence;
    slot_ = head.slot;
    leaves_ = leaf;
    first_task_ = first_task;
    return before;
  }

 private:
  int sequence_ = -1, slot_ = -1;
  int place_ = 0;        ///< of the slot in its group
  bool leaves_ = false;  ///< all of the group so far
  int first_task_ = -1;
};

/// Where row `row` of a slot's lane lies in the partials.
std::int64_t partial_row(const Partials& partials, int slot, int lane, std::int64_t row) {
  return (static_cast<std::int64_t>(slot) * partials.lanes + lane) * partials.rows + row;
}

}  // namespace

/// Whether queries and rows are multiplied as bf16: of all sequences or of none.
bool CpuBackend::multiplies_bf16(const AttendArgs& args) const {
  const std::vector<DType>& rows = info_.bf16_rows;
  return !rows.empty() &&
         std::all_of(args.sequences.begin(), args.sequences.end(), [&](const AttendSequence& sequence) {
           return may_be_bf16(sequence.keys, rows) && may_be_bf16(sequence.values, rows);
         });
}

/// Brings chunks of one slot together; within a slot the listed order stays.
void CpuBackend::list_chunks(const AttendArgs& args) {
  chunk_order_.resize(args.chunks.size());
  std::iota(chunk_order_.begin(), chunk_order_.end(), 0);
  std::sort(chunk_order_.begin(), chunk_order_.end(), [&](int a, int b) {
    const KvChunk& chunk_a = args.chunks[static_cast<std::size_t>(a)];
    const KvChunk& chunk_b = args.chunks[static_cast<std::size_t>(b)];
    if (chunk_a.sequence != chunk_b.sequence) return chunk_a.sequence < chunk_b.sequence;
    if (chunk_a.slot != chunk_b.slot) return chunk_a.slot < chunk_b.slot;
    return a < b;
  });
}

/// Cuts the work into tasks and gives each thread a contiguous range of about equal cost. Groups of rows are as tall as
/// leaves enough tasks for all threads; a row's bits do not depend on its group.
void CpuBackend::list_attend_tasks(const AttendArgs& args) {
  const int threads = pool_->threads();
  const auto for_slots = [&](auto&& visit) {
    for (std::size_t first = 0; first < chunk_order_.size();) {
      const KvChunk& head = args.chunks[static_cast<std::size_t>(chunk_order_[first])];
      std::size_t last = first + 1;
      for (; last < chunk_order_.size(); ++last) {
        const KvChunk& next = args.chunks[static_cast<std::size_t>(chunk_order_[last])];
        if (next.sequence != head.sequence || next.slot != head.slot) break;
      }
      visit(static_cast<int>(first), static_cast<int>(last - first), head);
      first = last;
    }
  };
  const auto groups_of = [&](int group_rows) {
    std::int64_t tasks = 0;
    for_slots([&](int, int, const KvChunk& head) {
      const std::int64_t rows = args.sequences[static_cast<std::size_t>(head.sequence)].q_WK.rows;
      tasks += (rows + group_rows - 1) / group_rows * args.lanes;
    });
    return tasks;
  };
  int group_rows = attend_bf16_ ? kernels_.bf16_group_rows : kernels_.group_rows;
  std::int64_t tasks = groups_of(group_rows);
  while (group_rows > kernels_.vector_width && tasks % threads != 0 && tasks < 4 * threads) {
    group_rows /= 2;
    tasks = groups_of(group_rows);
  }

  attend_tasks_.clear();
  double total = 0;
  const auto cost = [&](const AttendTask& task) {
    double keys = 0;
    for (int i = 0; i < task.chunk_count; ++i) {
      const KvChunk& chunk =
          args.chunks[static_cast<std::size_t>(chunk_order_[static_cast<std::size_t>(task.first_chunk + i)])];
      const AttendSequence& sequence = args.sequences[static_cast<std::size_t>(chunk.sequence)];
      const int visible = sequence.first_query_pos + (task.first_row + task.rows - 1) / args.rows_per_query + 1;
      keys += std::max(0, std::min(chunk.end, visible) - chunk.begin);
    }
    const int vectors = (task.rows + kernels_.vector_width - 1) / kernels_.vector_width;
    return (keys + kKeyBlock) * (vectors + 0.5);  // half a vector for reading the keys
  };
  LeafGroups groups;
  for_slots([&](int first, int count, const KvChunk& head) {
    int leaf_before = groups.tasks_of_leaf_before(head, count, static_cast<int>(attend_tasks_.size()));
    const auto rows = static_cast<int>(args.sequences[static_cast<std::size_t>(head.sequence)].q_WK.rows);
    for (int lane = 0; lane < args.lanes; ++lane) {
      for (int row = 0; row < rows; row += group_rows) {
        attend_tasks_.push_back({.first_chunk = first,
                                 .chunk_count = count,
                                 .lane = lane,
                                 .first_row = row,
                                 .rows = std::min(group_rows, rows - row),
                                 .slot = head.slot,
                                 .result_slot = head.slot,
                                 .leaf_before = leaf_before < 0 ? -1 : leaf_before++});
        total += cost(attend_tasks_.back());
      }
    }
  });
  double at = 0;
  std::size_t thread = 0;
  first_task_[0] = 0;
  for (std::size_t i = 0; i < attend_tasks_.size(); ++i) {
    const double middle = at + cost(attend_tasks_[i]) / 2;
    while (middle * threads >= total * static_cast<double>(thread + 1)) first_task_[++thread] = static_cast<int>(i);
    at += cost(attend_tasks_[i]);
  }
  while (thread < static_cast<std::size_t>(threads)) first_task_[++thread] = static_cast<int>(attend_tasks_.size());
  fold_leaves_of_threads();
}

/// A thread that has leaves 0 .. i of a group of the merge tree folds them into the first one's slot, as the merge
/// would, and leaves the others' slots empty: results of many rows are larger than the keys that they are made of.
void CpuBackend::fold_leaves_of_threads() {
  for (std::size_t thread = 0; thread + 1 < first_task_.size(); ++thread) {
    for (int i = first_task_[thread]; i < first_task_[thread + 1]; ++i) {
      AttendTask& task = attend_tasks_[static_cast<std::size_t>(i)];
      if (task.leaf_before < first_task_[thread]) continue;
      const AttendTask& before = attend_tasks_[static_cast<std::size_t>(task.leaf_before)];
      if (before.leaf_before < 0 || before.result_slot != before.slot) task.result_slot = before.result_slot;
    }
  }
}

void CpuBackend::run_attend_task(const AttendArgs& args, const AttendTask& task, Scratch& scratch) const {
  const int key_width = args.key_width;
  const int value_width = args.value_width;
  const KvChunk& head = args.chunks[static_cast<std::size_t>(chunk_order_[static_cast<std::size_t>(task.first_chunk)])];
  const AttendSequence& sequence = args.sequences[static_cast<std::size_t>(head.sequence)];
  const int group_rows = most_group_rows(kernels_);

  auto* q_KW = scratch.get<float>(0);
  float* leaf_o = q_KW + query_floats(kernels_, key_width);
  float* leaf_sums = leaf_o + group_rows * leaf_stride(value_width);
  float* leaf_shares = leaf_sums + group_rows;
  auto* visible = reinterpret_cast<int*>(leaf_shares + group_rows);
  float* leaf_scratch = leaf_sums + 3 * static_cast<std::int64_t>(group_rows);
  const auto* q = static_cast<const float*>(sequence.q_WK.data) + task.lane * sequence.q_lane_stride;
  kernels_.prepare_queries({.q = q + task.first_row * sequence.q_WK.row_stride,
                            .stride = sequence.q_WK.row_stride,
                            .rows = task.rows,
                            .key_width = key_width,
                            .bf16 = attend_bf16_},
                           q_KW);
  for (int i = 0; i < task.rows; ++i) {
    visible[i] = sequence.first_query_pos + (task.first_row + i) / args.rows_per_query + 1;
  }

  const auto row_of_slot = [&](int slot) {
    return partial_row(args.partials, slot, task.lane, sequence.first_row + task.first_row);
  };
  float* slot_o = static_cast<float*>(args.partials.o) + row_of_slot(task.result_slot) * value_width;
  float* slot_sums = static_cast<float*>(args.partials.log2_sums) + row_of_slot(task.result_slot);
  const bool elsewhere = task.result_slot != task.slot;
  std::fill_n(static_cast<float*>(args.partials.log2_sums) + row_of_slot(task.slot), elsewhere ? task.rows : 0,
              Log2Sum{}.value);
  for (int i = 0; i < task.chunk_count; ++i) {
    const KvChunk& chunk =
        args.chunks[static_cast<std::size_t>(chunk_order_[static_cast<std::size_t>(task.first_chunk + i)])];
    kernels_.attend_leaf({.q_KW = q_KW,
                          .rows = task.rows,
                          .visible = visible,
                          .keys = lane_rows(sequence.keys, task.lane),
                          .values = lane_rows(sequence.values, task.lane),
                          .values_are_keys = value_width <= key_width && same_rows(sequence.keys, sequence.values),
                          .bf16 = attend_bf16_,
                          .first_key_pos = sequence.first_key_pos,
                          .begin = chunk.begin,
                          .end = std::min(chunk.end, sequence.first_key_pos + sequence.keys.rows),
                          .cached = sequence.keys.rows,
                          .key_width = key_width,
                          .value_width = value_width,
                          .scale_log2 = static_cast<float>(args.scale_log2),
                          .scratch = leaf_scratch,
                          .o = leaf_o,
                          .o_stride = leaf_stride(value_width),
                          .shares = leaf_shares,
                          .log2_sums = leaf_sums});
    for (int row = 0; row < task.rows; ++row) {
      if (chunk.opens_slot && !elsewhere) slot_sums[row] = Log2Sum{}.value;
      fold_state(kernels_, {slot_o + row * static_cast<std::int64_t>(value_width), slot_sums + row},
                 {leaf_o + row * leaf_stride(value_width), leaf_sums[row], leaf_shares[row]}, value_width);
    }
  }
}

void CpuBackend::attend_partial(const AttendArgs& args) {
  expects(args.partials.dtype == DType::kF32, "partials on cpu are F32");
  expects(args.partials.lanes == args.lanes && args.partials.width == args.value_width, "partials fit the call");
  expects(args.rows_per_query > 0 && args.lanes > 0, "packed rows belong to queries of lanes");
  for (const AttendSequence& sequence : args.sequences) {
    expects(sequence.q_WK.dtype == DType::kF32 && sequence.q_WK.cols == args.key_width,
            "packed rows are F32 of the key width");
    expects(sequence.first_row >= 0 && sequence.first_row + sequence.q_WK.rows <= args.partials.rows,
            "partials hold every row");
  }
  for (const KvChunk& chunk : args.chunks) {
    expects(chunk.sequence >= 0 && static_cast<std::size_t>(chunk.sequence) < args.sequences.size(),
            "a chunk names its sequence");
    expects(chunk.slot >= 0 && chunk.slot < args.partials.slots, "a chunk's slot exists");
    expects(chunk.begin >= args.sequences[static_cast<std::size_t>(chunk.sequence)].first_key_pos,
            "a chunk's keys exist");
  }
  attend_bf16_ = multiplies_bf16(args);
  list_chunks(args);
  list_attend_tasks(args);
  const std::int64_t group_rows = most_group_rows(kernels_);
  const std::int64_t floats = query_floats(kernels_, args.key_width) +
                              group_rows * (leaf_stride(args.value_width) + 3) +
                              leaf_scratch_floats(kernels_, args.key_width, args.value_width);
  for (Scratch& scratch : thread_scratch_) scratch.get<float>(floats);
  pool_->run(pool_->threads(), [&](int part, int thread) {
    const auto at = static_cast<std::size_t>(part);
    for (int task = first_task_[at]; task < first_task_[at + 1]; ++task) {
      run_attend_task(args, attend_tasks_[static_cast<std::size_t>(task)],
                      thread_scratch_[static_cast<std::size_t>(thread)]);
    }
  });
}

}  // namespace latte
