#include <algorithm>
#include <cstring>

#include "device/cpu/cpu_backend.h"
#include "device/cpu/fold.h"

namespace latte {
namespace {

/// Enough levels of fan-in 8 for any int number of slots.
constexpr int kMaxLevels = 12;

/// A row's way up the merge tree: per level the group being folded, and how many of its members it has.
class MergeTree {
 public:
  MergeTree(const KernelTable& kernels, float* o, int width) : kernels_(kernels), o_(o), width_(width) {}

  void add(const float* o, float log2_sum) { add_at(0, o, log2_sum); }

  /// Folds unfinished groups upward; the result, or null when nothing was seen.
  const float* finish() {
    for (int level = 0; level < top_; ++level) {
      if (counts_[level] > 0) add_at(level + 1, level_o(level), sums_[level].value);
    }
    return sums_[top_].empty() ? nullptr : level_o(top_);
  }

 private:
  float* level_o(int level) const { return o_ + static_cast<std::int64_t>(level) * width_; }

  void add_at(int level, const float* o, float log2_sum) {
    expects(level < kMaxLevels, "the merge tree holds every slot");
    if (counts_[level] == kMergeFanIn) {
      add_at(level + 1, level_o(level), sums_[level].value);
      counts_[level] = 0;
      sums_[level] = {};
    }
    top_ = std::max(top_, level);
    fold_state(kernels_, {level_o(level), &sums_[level].value}, {o, log2_sum}, width_);
    ++counts_[level];
  }

  const KernelTable& kernels_;
  float* o_;
  int width_;
  int top_ = 0;
  int counts_[kMaxLevels] = {};
  Log2Sum sums_[kMaxLevels];
};

}  // namespace

void fold_state(const KernelTable& kernels, StateRef into, const FoldedState& state, std::int64_t width) {
  const Log2Sum a{*into.log2_sum};
  const Log2Sum b{state.log2_sum};
  if (b.empty()) return;
  if (a.empty()) {
    kernels.scale(into.o, state.o, state.share, width);
    *into.log2_sum = state.log2_sum;
    return;
  }
  const MergeWeights weights = merge_weights(a, b);
  kernels.combine(into.o, state.o, state.share, weights.a_weight, weights.b_weight, width);
  *into.log2_sum = weights.sum.value;
}

void CpuBackend::merge_row(const MergeArgs& args, const MergeRange& range, std::int64_t row, int lane,
                           Scratch& scratch) const {
  const Partials& partials = args.partials;
  MergeTree tree(kernels_, scratch.get<float>(0), partials.width);
  for (int slot = range.first_slot; slot < range.first_slot + range.slot_count; ++slot) {
    const std::int64_t at = (static_cast<std::int64_t>(slot) * partials.lanes + lane) * partials.rows + row;
    tree.add(static_cast<const float*>(partials.o) + at * partials.width,
             static_cast<const float*>(partials.log2_sums)[at]);
  }
  auto* out = static_cast<float*>(args.out.at(row, 0)) + lane * args.out_lane_stride;
  const std::size_t bytes = static_cast<std::size_t>(partials.width) * sizeof(float);
  if (const float* o = tree.finish()) {
    std::memcpy(out, o, bytes);
  } else {
    std::memset(out, 0, bytes);
  }
}

void CpuBackend::merge_partials(const MergeArgs& args) {
  const Partials& partials = args.partials;
  expects(partials.dtype == DType::kF32 && args.out.dtype == DType::kF32, "partials and activations on cpu are F32");
  for (Scratch& scratch : thread_scratch_) scratch.get<float>(static_cast<std::int64_t>(kMaxLevels) * partials.width);
  for (const MergeRange& range : args.ranges) {
    expects(range.first_slot >= 0 && range.first_slot + range.slot_count <= partials.slots, "merged slots exist");
    expects(range.first_row >= 0 && range.first_row + range.row_count <= partials.rows, "merged rows exist");
    for_rows(range.row_count * partials.lanes, static_cast<std::int64_t>(range.slot_count) * partials.width,
             [&](std::int64_t i, int thread) {
               const std::int64_t row = range.first_row + i / partials.lanes;
               merge_row(args, range, row, static_cast<int>(i % partials.lanes),
                         thread_scratch_[static_cast<std::size_t>(thread)]);
             });
  }
}

}  // namespace latte
