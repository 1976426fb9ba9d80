#include <algorithm>
#include <cstring>
#include <functional>
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

/// Brings chunks of one slot together; within a slot the listed order stays. Finds each slot's place in the merge tree.
void CpuBackend::list_slots(const AttendArgs& args) {
  chunk_order_.resize(args.chunks.size());
  std::iota(chunk_order_.begin(), chunk_order_.end(), 0);
  const auto chunk = [&](std::size_t i) -> const KvChunk& {
    return args.chunks[static_cast<std::size_t>(chunk_order_[i])];
  };
  std::sort(chunk_order_.begin(), chunk_order_.end(), [&](int a, int b) {
    const KvChunk& chunk_a = args.chunks[static_cast<std::size_t>(a)];
    const KvChunk& chunk_b = args.chunks[static_cast<std::size_t>(b)];
    if (chunk_a.sequence != chunk_b.sequence) return chunk_a.sequence < chunk_b.sequence;
    if (chunk_a.slot != chunk_b.slot) return chunk_a.slot < chunk_b.slot;
    return a < b;
  });
  attend_slots_.clear();
  for (std::size_t i = 0; i < chunk_order_.size(); ++i) {
    const KvChunk& next = chunk(i);
    if (!attend_slots_.empty() && attend_slots_.back().sequence == next.sequence &&
        attend_slots_.back().slot == next.slot) {
      ++attend_slots_.back().chunk_count;
      attend_slots_.back().leaf = false;
      continue;
    }
    AttendSlot slot{
        .first_chunk = static_cast<int>(i), .sequence = next.sequence, .slot = next.slot, .leaf = next.opens_slot};
    if (!attend_slots_.empty()) {
      const AttendSlot& before = attend_slots_.back();
      const bool follows = before.sequence == slot.sequence && before.slot + 1 == slot.slot;
      slot.place = follows ? (before.place + 1) % kMergeFanIn : 0;
    }
    attend_slots_.push_back(slot);
  }
  for (std::size_t i = 1; i < attend_slots_.size(); ++i) {
    if (attend_slots_[i].place > 0) attend_slots_[i].leaf = attend_slots_[i].leaf && attend_slots_[i - 1].leaf;
  }
}

/// Cuts the work into tasks and gives each thread a contiguous range of about equal cost. Groups of rows are as tall as
/// leaves enough tasks for all threads; a row's bits do not depend on its group.
void CpuBackend::list_attend_tasks(const AttendArgs& args) {
  const int threads = pool_->threads();
  const auto rows_of = [&](const AttendSlot& slot) {
    return static_cast<int>(args.sequences[static_cast<std::size_t>(slot.sequence)].q_WK.rows);
  };
  const int tallest = attend_bf16_ ? kernels_.bf16_group_rows : kernels_.group_rows;
  int group_rows = tallest;
  const auto tasks_of_slot = [&](const AttendSlot& slot) {
    return (rows_of(slot) + group_rows - 1) / group_rows * args.lanes;
  };
  const auto all_tasks = [&] {
    return std::transform_reduce(attend_slots_.begin(), attend_slots_.end(), std::int64_t{0}, std::plus<>(),
                                 tasks_of_slot);
  };
  std::int64_t tasks = all_tasks();
  while (group_rows > kernels_.vector_width && tasks % threads != 0 && tasks < 4 * threads) {
    group_rows /= 2;
    tasks = all_tasks();
  }
  prepared_rows_ = std::min(group_rows, query_rows(kernels_));

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
  // `distance`: from the task of the same rows in the slot before.
  const auto add = [&](const AttendSlot& slot, int lane, int row, int distance) {
    const bool after_leaf = slot.leaf && slot.place > 0;
    attend_tasks_.push_back({.first_chunk = slot.first_chunk,
                             .chunk_count = slot.chunk_count,
                             .lane = lane,
                             .first_row = row,
                             .rows = std::min(group_rows, rows_of(slot) - row),
                             .slot = slot.slot,
                             .result_slot = slot.slot,
                             .leaf_before = after_leaf ? static_cast<int>(attend_tasks_.size()) - distance : -1});
    total += cost(attend_tasks_.back());
  };
  for (std::size_t first = 0, last = 0; first < attend_slots_.size(); first = last) {
    // Rows of several whole groups, and their results, are more than the keys of a leaf: each group meets all leaves of
    // a group of the merge tree before the next one does. Fewer rows wait for keys, which are read once then.
    const bool many = rows_of(attend_slots_[first]) > tallest;
    for (last = first + 1; many && last < attend_slots_.size() && attend_slots_[last].place > 0;) ++last;
    const int distance = many ? 1 : tasks_of_slot(attend_slots_[first]);
    for (int lane = 0; lane < args.lanes; ++lane) {
      for (int row = 0; row < rows_of(attend_slots_[first]); row += group_rows) {
        for (std::size_t i = first; i < last; ++i) add(attend_slots_[i], lane, row, distance);
      }
    }
  }
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

std::int64_t CpuBackend::query_place(const AttendArgs& args, const QueryGroup& group) const {
  const auto sequence = static_cast<std::size_t>(group.sequence);
  const std::int64_t rows = args.sequences[sequence].q_WK.rows;
  return first_query_[sequence] + group.lane * query_floats(kernels_, rows, args.key_width, attend_bf16_) +
         group.first_row * query_row_floats(args.key_width, attend_bf16_);
}

void CpuBackend::prepare_group(const AttendArgs& args, const QueryGroup& group, float* to) const {
  const AttendSequence& sequence = args.sequences[static_cast<std::size_t>(group.sequence)];
  const auto* q = static_cast<const float*>(sequence.q_WK.data) + group.lane * sequence.q_lane_stride;
  kernels_.prepare_queries({.q = q + group.first_row * sequence.q_WK.row_stride,
                            .stride = sequence.q_WK.row_stride,
                            .rows = group.rows,
                            .key_width = args.key_width,
                            .bf16 = attend_bf16_},
                           to);
}

/// Prepares the queries of all tasks in pieces that threads share, where tasks of several slots read the same ones.
void CpuBackend::prepare_shared_queries(const AttendArgs& args) {
  first_query_.clear();
  std::int64_t rows = 0, tasks_rows = 0;
  for (const AttendSequence& sequence : args.sequences) rows += sequence.q_WK.rows * args.lanes;
  for (const AttendTask& task : attend_tasks_) tasks_rows += task.rows;
  if (tasks_rows <= rows) return;
  std::int64_t floats = 0;
  query_groups_.clear();
  for (int i = 0; i < static_cast<int>(args.sequences.size()); ++i) {
    const auto count = static_cast<int>(args.sequences[static_cast<std::size_t>(i)].q_WK.rows);
    first_query_.push_back(floats);
    floats += args.lanes * query_floats(kernels_, count, args.key_width, attend_bf16_);
    for (int lane = 0; lane < args.lanes; ++lane) {
      for (int row = 0; row < count; row += prepared_rows_)
        query_groups_.push_back({i, lane, row, std::min(prepared_rows_, count - row)});
    }
  }
  queries_ = query_memory_.get<float>(floats);
  for_rows(std::ssize(query_groups_), std::int64_t{prepared_rows_} * args.key_width, [&](std::int64_t i, int) {
    const QueryGroup& group = query_groups_[static_cast<std::size_t>(i)];
    prepare_group(args, group, queries_ + query_place(args, group));
  });
}

void CpuBackend::run_attend_task(const AttendArgs& args, const AttendTask& task, Scratch& scratch) const {
  const int key_width = args.key_width;
  const int value_width = args.value_width;
  const KvChunk& head = args.chunks[static_cast<std::size_t>(chunk_order_[static_cast<std::size_t>(task.first_chunk)])];
  const AttendSequence& sequence = args.sequences[static_cast<std::size_t>(head.sequence)];
  const int group_rows = most_group_rows(kernels_);

  auto* own_q_KW = scratch.get<float>(0);
  float* leaf_o = own_q_KW + query_floats(kernels_, group_rows, key_width, attend_bf16_);
  float* leaf_sums = leaf_o + group_rows * leaf_stride(value_width);
  float* leaf_shares = leaf_sums + group_rows;
  auto* visible = reinterpret_cast<int*>(leaf_shares + group_rows);
  float* leaf_scratch = leaf_sums + 3 * static_cast<std::int64_t>(group_rows);
  const float* q_KW = own_q_KW;
  const QueryGroup group{head.sequence, task.lane, task.first_row, task.rows};
  if (first_query_.empty()) {
    prepare_group(args, group, own_q_KW);
  } else {
    q_KW = queries_ + query_place(args, group);
  }
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
  list_slots(args);
  list_attend_tasks(args);
  prepare_shared_queries(args);
  const std::int64_t group_rows = most_group_rows(kernels_);
  const std::int64_t floats = query_floats(kernels_, group_rows, args.key_width, attend_bf16_) +
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
