#include <cstring>

#include "device/cpu/cpu_backend.h"

// Gated feed-forward blocks. Gate and up are one launch, down is another; rows are packed by expert so that each chosen
// expert's weights are read once for all of its rows.

namespace latte {
namespace {

void expects_block(const ExpertWeights& weights, std::int64_t width) {
  const auto is_weight = [](const ConstMatRef& w) { return w.dtype == DType::kF32 || w.dtype == DType::kBf16; };
  expects(is_weight(weights.gate) && is_weight(weights.down), "weights on cpu are F32 or BF16");
  expects(weights.up.dtype == weights.gate.dtype, "gate and up are of one type");
  expects(weights.gate.cols == width && weights.up.cols == width && weights.down.rows == width, "a block maps D to D");
  expects(weights.up.rows == weights.gate.rows && weights.down.cols == weights.gate.rows,
          "a block's hidden width is one");
}

/// What a launch reads: f32 rows, and the same rows rounded where a weight asks for it.
struct LaunchRows {
  const float* x = nullptr;
  const std::uint16_t* x_bf16 = nullptr;
  std::int64_t stride = 0;
  std::int64_t bf16_stride = 0;
};

ProductJob block_job(const ConstMatRef& w, const ConstMatRef* w_up, const LaunchRows& rows, std::int64_t first,
                     std::int64_t count, bool round, float* y, std::int64_t y_stride) {
  return {.w = w.data,
          .w_up = w_up == nullptr ? nullptr : w_up->data,
          .w_stride = w.row_stride,
          .w_up_stride = w_up == nullptr ? 0 : w_up->row_stride,
          .w_bf16 = w.dtype == DType::kBf16,
          .x = round ? static_cast<const void*>(rows.x_bf16 + first * rows.bf16_stride) : rows.x + first * rows.stride,
          .x_stride = round ? rows.bf16_stride : rows.stride,
          .x_bf16 = round,
          .y = y,
          .y_stride = y_stride,
          .m = count,
          .n = w.rows,
          .k = w.cols};
}

}  // namespace

/// Counts rows per expert and gives every (row, choice) its place; the shared expert's rows follow all others.
void CpuBackend::group_by_expert(const ExpertsArgs& args) {
  const std::int64_t rows = args.ids_Lk.rows;
  const std::int64_t choices = args.ids_Lk.cols;
  const auto experts = static_cast<std::int64_t>(args.experts.size());
  rows_of_expert_.assign(static_cast<std::size_t>(experts), 0);
  for (std::int64_t l = 0; l < rows; ++l) {
    for (std::int64_t i = 0; i < choices; ++i) {
      const std::int32_t id = args.ids_Lk(l, i);
      expects(id >= 0 && id < experts, "a chosen expert exists");
      ++rows_of_expert_[static_cast<std::size_t>(id)];
    }
  }
  expert_rows_.clear();
  std::int64_t first = 0;
  std::int64_t first_hidden = 0;
  const auto push = [&](const ExpertWeights& weights, std::int64_t count) {
    expects_block(weights, args.x_LD.cols);
    expert_rows_.push_back({&weights, first, count, first_hidden});
    first += count;
    first_hidden += count * weights.gate.rows;
  };
  for (std::size_t e = 0; e < args.experts.size(); ++e) {
    const std::int64_t count = rows_of_expert_[e];
    rows_of_expert_[e] = first;
    if (count > 0) push(args.experts[e], count);
  }
  packed_row_.resize(static_cast<std::size_t>(rows * choices));
  for (std::int64_t l = 0; l < rows; ++l) {
    for (std::int64_t i = 0; i < choices; ++i) {
      packed_row_[static_cast<std::size_t>(l * choices + i)] =
          rows_of_expert_[static_cast<std::size_t>(args.ids_Lk(l, i))]++;
    }
  }
  if (args.shared != nullptr) push(*args.shared, rows);
}

void CpuBackend::experts(const ExpertsArgs& args) {
  const MatView<const float> x = typed<const float>(args.x_LD);
  const MatView<float> y = typed<float>(args.y_LD);
  const MatView<const float> weights = typed<const float>(args.weights_Lk);
  const std::int64_t choices = args.ids_Lk.cols;
  const std::int64_t width = x.cols;
  expects(args.x_LD.dtype == DType::kF32 && args.y_LD.dtype == DType::kF32 && args.weights_Lk.dtype == DType::kF32,
          "activations on cpu are F32");
  expects(y.rows == x.rows && y.cols == width && args.ids_Lk.rows == x.rows && weights.rows == x.rows &&
              weights.cols == choices,
          "experts keep shape");
  if (x.rows == 0) return;
  group_by_expert(args);
  if (expert_rows_.empty()) return;

  const ExpertRows& last = expert_rows_.back();
  const std::int64_t packed_rows = last.first + last.count;
  const std::int64_t hidden_floats = last.first_hidden + last.count * last.weights->gate.rows;
  auto* packed = packed_x_.get<float>(packed_rows * width);
  auto* hidden = hidden_.get<float>(hidden_floats);
  auto* out = expert_out_.get<float>(packed_rows * width);
  const std::int64_t shared_first = args.shared == nullptr ? packed_rows : last.first;
  const std::size_t row_bytes = static_cast<std::size_t>(width) * sizeof(float);
  for_rows(x.rows, (choices + 1) * width, [&](std::int64_t l, int) {
    for (std::int64_t i = 0; i < choices; ++i) {
      std::memcpy(packed + packed_row_[static_cast<std::size_t>(l * choices + i)] * width, x.row(l), row_bytes);
    }
    if (args.shared != nullptr) std::memcpy(packed + (shared_first + l) * width, x.row(l), row_bytes);
  });

  LaunchRows rows{.x = packed, .stride = width, .bf16_stride = width};
  bool round_x = false;
  bool round_hidden = false;
  for (const ExpertRows& group : expert_rows_) {
    round_x = round_x || rounds(group.weights->gate.dtype);
    round_hidden = round_hidden || rounds(group.weights->down.dtype);
  }
  if (round_x) rows.x_bf16 = rounded(packed, width, packed_rows, width);
  jobs_.clear();
  for (const ExpertRows& group : expert_rows_) {
    const ExpertWeights& block = *group.weights;
    jobs_.push_back(block_job(block.gate, &block.up, rows, group.first, group.count, rounds(block.gate.dtype),
                              hidden + group.first_hidden, block.gate.rows));
  }
  products_.run(jobs_);

  const std::uint16_t* hidden_bf16 = round_hidden ? rounded(hidden, hidden_floats, 1, hidden_floats) : nullptr;
  jobs_.clear();
  for (const ExpertRows& group : expert_rows_) {
    const ExpertWeights& block = *group.weights;
    const std::int64_t stride = block.gate.rows;
    const LaunchRows hidden_rows{.x = hidden + group.first_hidden,
                                 .x_bf16 = round_hidden ? hidden_bf16 + group.first_hidden : nullptr,
                                 .stride = stride,
                                 .bf16_stride = stride};
    jobs_.push_back(block_job(block.down, nullptr, hidden_rows, 0, group.count, rounds(block.down.dtype),
                              out + group.first * width, width));
  }
  products_.run(jobs_);

  for_rows(x.rows, (choices + 1) * width, [&](std::int64_t l, int) {
    for (std::int64_t i = 0; i < choices; ++i) {
      const std::int64_t row = packed_row_[static_cast<std::size_t>(l * choices + i)];
      kernels_.add_scaled(y.row(l), out + row * width, weights(l, i), width);
    }
    if (args.shared != nullptr) kernels_.add_scaled(y.row(l), out + (shared_first + l) * width, 1.0f, width);
  });
}

void CpuBackend::ffn(const FfnArgs& args) {
  const MatView<const float> x = typed<const float>(args.x_LD);
  const ExpertWeights& block = args.weights;
  expects(args.x_LD.dtype == DType::kF32 && args.y_LD.dtype == DType::kF32, "activations on cpu are F32");
  expects(args.y_LD.rows == x.rows && args.y_LD.cols == x.cols, "a feed-forward block keeps shape");
  expects_block(block, x.cols);
  const std::int64_t hidden_width = block.gate.rows;
  auto* hidden = hidden_.get<float>(x.rows * hidden_width);
  const bool round_x = rounds(block.gate.dtype);
  const LaunchRows rows{.x = x.data,
                        .x_bf16 = round_x ? rounded(x.data, x.row_stride, x.rows, x.cols) : nullptr,
                        .stride = x.row_stride,
                        .bf16_stride = x.cols};
  const ProductJob gated = block_job(block.gate, &block.up, rows, 0, x.rows, round_x, hidden, hidden_width);
  products_.run(std::span(&gated, 1));

  const bool round_hidden = rounds(block.down.dtype);
  const LaunchRows hidden_rows{.x = hidden,
                               .x_bf16 = round_hidden ? rounded(hidden, hidden_width, x.rows, hidden_width) : nullptr,
                               .stride = hidden_width,
                               .bf16_stride = hidden_width};
  ProductJob down = block_job(block.down, nullptr, hidden_rows, 0, x.rows, round_hidden,
                              static_cast<float*>(args.y_LD.data), args.y_LD.row_stride);
  down.accumulate = true;
  products_.run(std::span<const ProductJob>(&down, 1));
}

}  // namespace latte
