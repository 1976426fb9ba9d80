#include <cstring>

#include "device/cpu/cpu_backend.h"
#include "tensor/grouped.h"

// Gated feed-forward blocks. Gate and up are one launch, down is another; rows are packed by expert so that each chosen
// expert's weights are read once for all of its rows.

namespace latte {
namespace {

void expects_block(const ExpertWeights& weights, std::int64_t width) {
  expects(weights.up.dtype == weights.gate.dtype, "gate and up are of one type");
  expects(weights.gate.cols == width && weights.up.cols == width && weights.down.rows == width, "a block maps D to D");
  expects(weights.up.rows == weights.gate.rows && weights.down.cols == weights.gate.rows,
          "a block's hidden width is one");
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
    expert_rows_.push_back({&weights, first, count, first_hidden, {}});
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

/// Hidden rows of every expert in the forms that the down projections ask for: their widths may differ.
void CpuBackend::add_hidden_forms(StepClass step_class, const float* hidden) {
  std::int64_t words = 0, floats = 0, elements = 0;
  bool round = false;
  for (const ExpertRows& group : expert_rows_) {
    const ConstMatRef& down = group.weights->down;
    floats += group.count * down.cols;
    if (wide(step_class, down.dtype, group.count)) {
      elements += wide_elements(group.count, down.cols);
    } else if (rounds(down.dtype)) {
      round = true;
    } else if (is_grouped(down.dtype)) {
      words += code_words(group.count, down.cols);
    }
  }
  auto* tiles = tiles_.get<std::uint16_t>(elements);
  const std::uint16_t* bf16 = round ? rounded(hidden, floats, 1, floats) : nullptr;
  auto* codes = codes_.get<std::int32_t>(words);
  for (ExpertRows& group : expert_rows_) {
    const ConstMatRef& down = group.weights->down;
    const std::int64_t inner = down.cols;
    group.hidden = {.x = hidden + group.first_hidden, .stride = inner, .bf16_stride = inner};
    if (wide(step_class, down.dtype, group.count)) {
      group.hidden.tiles = list_tiles(group.hidden.x, inner, group.count, inner, tiles);
      continue;
    }
    if (rounds(down.dtype)) group.hidden.bf16 = bf16 + group.first_hidden;
    if (is_grouped(down.dtype)) group.hidden.codes = list_codes(group.hidden.x, inner, group.count, inner, codes);
  }
  make_tiles();
  make_codes();
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

  ProductRows rows{.x = packed, .stride = width};
  jobs_.clear();
  std::int64_t words = 0, elements = 0;
  for (const ExpertRows& group : expert_rows_) {
    const DType gate = group.weights->gate.dtype;
    if (wide(args.step_class, gate, group.count)) {
      elements += wide_elements(group.count, width);
    } else if (is_grouped(gate)) {
      words += code_words(group.count, width);
    }
  }
  auto* tiles = tiles_.get<std::uint16_t>(elements);
  auto* codes = codes_.get<std::int32_t>(words);
  for (const ExpertRows& group : expert_rows_) {
    const ExpertWeights& block = *group.weights;
    const bool many = wide(args.step_class, block.gate.dtype, group.count);
    if (many) {
      rows.tiles = list_tiles(packed + group.first * width, width, group.count, width, tiles);
    } else if (is_grouped(block.gate.dtype)) {
      rows.codes = list_codes(packed + group.first * width, width, group.count, width, codes);
    } else {
      add_form(rows, block.gate.dtype, false, packed_rows, width);
    }
    const std::int64_t inner = block.gate.rows;
    jobs_.push_back(product_job(block.gate, &block.up, rows, many, group.first, group.count,
                                {hidden + group.first_hidden, group.count, inner, inner}));
  }
  make_tiles();
  make_codes();
  products_.run(jobs_);

  add_hidden_forms(args.step_class, hidden);
  jobs_.clear();
  for (const ExpertRows& group : expert_rows_) {
    const bool many = wide(args.step_class, group.weights->down.dtype, group.count);
    jobs_.push_back(product_job(group.weights->down, nullptr, group.hidden, many, 0, group.count,
                                {out + group.first * width, group.count, width, width}));
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
  const std::int64_t inner = block.gate.rows;
  auto* hidden = hidden_.get<float>(x.rows * inner);
  ProductRows rows{.x = x.data, .stride = x.row_stride};
  const bool many = wide(args.step_class, block.gate.dtype, x.rows);
  add_form(rows, block.gate.dtype, many, x.rows, x.cols);
  const ProductJob gated = product_job(block.gate, &block.up, rows, many, 0, x.rows, {hidden, x.rows, inner, inner});
  products_.run(std::span(&gated, 1));

  ProductRows hidden_rows{.x = hidden, .stride = inner};
  const bool many_hidden = wide(args.step_class, block.down.dtype, x.rows);
  add_form(hidden_rows, block.down.dtype, many_hidden, x.rows, inner);
  ProductJob down = product_job(block.down, nullptr, hidden_rows, many_hidden, 0, x.rows, typed<float>(args.y_LD));
  down.accumulate = true;
  products_.run(std::span<const ProductJob>(&down, 1));
}

}  // namespace latte
