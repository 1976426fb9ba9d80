#include "model/step.h"

#include <array>
#include <cmath>

#include "base/fail.h"

namespace latte {

Status check_ids(std::span<const TokenId> ids, int vocab, int length, int context) {
  if (ids.empty()) return fail(ErrorKind::kInvalidInput, "[step] no token ids, expected at least one");
  for (const TokenId id : ids) {
    if (id < 0 || id >= vocab) {
      return fail(ErrorKind::kInvalidInput, "[step] token id {}, expected 0 to {}: the ids belong to another tokenizer",
                  id, vocab - 1);
    }
  }
  if (static_cast<std::int64_t>(length) + static_cast<std::int64_t>(ids.size()) > context) {
    return fail(ErrorKind::kInvalidInput,
                "[step] {} tokens after {} in the cache, the context holds {}: shorten the prompt or raise --ctx-size",
                ids.size(), length, context);
  }
  return {};
}

void plan_model_step(const ModelConfig& config, int rows_before, int new_rows, Role role, const FormRule& rule,
                     StepPlan& plan) {
  if (config.attention == AttentionKind::kGqa) {
    plan_step(config.gqa, rows_before, new_rows, role, plan);
  } else {
    plan_step(config.geometry, rows_before, new_rows, role, rule, plan);
  }
}

void upload_angles(const RopeTable& rope, int first, Backend& backend, const LayerBuffers& buffers,
                   std::vector<double>& angles) {
  const std::size_t pairs = rope.inv_freq.size();
  const auto rows = static_cast<std::size_t>(buffers.cos_Lp.rows);
  if (pairs == 0) return;
  angles.resize(rows * pairs);
  const auto fill = [&](auto function, MatRef to) {
    for (std::size_t i = 0; i < rows; ++i) {
      const double position = first + static_cast<double>(i);
      for (std::size_t j = 0; j < pairs; ++j)
        angles[i * pairs + j] = rope.magnitude * function(position * rope.inv_freq[j]);
    }
    backend.upload(angles, to);
  };
  fill([](double angle) { return std::cos(angle); }, buffers.cos_Lp);
  fill([](double angle) { return std::sin(angle); }, buffers.sin_Lp);
}

Status check_finite(Backend& backend, ConstMatRef x, int first, std::string_view where) {
  const std::int64_t row = backend.first_nonfinite_row(x);
  if (row < 0) return {};
  return fail(ErrorKind::kNumeric,
              "[step] {} gave NaN or infinity at position {}, expected finite numbers: this request stops; check the "
              "weights with `latte inspect`",
              where, first + row);
}

ResultBuffers ResultBuffers::carve(BufferCarver& carver, int rows, int hidden, int vocab, LogitsWanted wanted,
                                   DType activation) {
  ResultBuffers r;
  r.hidden_LD = carver.take(rows, hidden, activation);
  r.logits = carver.take(logit_rows(wanted, rows), vocab, activation);
  return r;
}

MatView<const float> head_logits(Backend& backend, StepClass step_class, ConstMatRef head, const ResultBuffers& results,
                                 std::vector<float>& host) {
  const std::int64_t rows = results.logits.rows;
  const std::int64_t vocab = results.logits.cols;
  if (rows == 0) return {nullptr, 0, vocab, vocab};
  const std::array product = {Projection{head, results.logits}};
  backend.matmul({step_class, results.hidden_LD.rows_from(results.hidden_LD.rows - rows, rows), product});
  host.resize(static_cast<std::size_t>(rows * vocab));
  backend.download(results.logits, host);
  return {host.data(), rows, vocab, vocab};
}

}  // namespace latte
