#pragma once

#include <span>
#include <vector>

#include "model/layer.h"
#include "model/rope.h"
#include "model/timeline.h"

namespace latte {

/// Every id inside the vocabulary, at least one, and room for them after `length` rows of `context`.
Status check_ids(std::span<const TokenId> ids, int vocab, int length, int context);

/// plan_step for the attention that the model has.
void plan_model_step(const ModelConfig& config, int rows_before, int new_rows, Role role, const FormRule& rule,
                     StepPlan& plan);

/// Fills cos and sin [L, p/2] for positions first .. first + L - 1 from the rope table, through the host scratch
/// `angles`.
void upload_angles(const RopeTable& rope, int first, Backend& backend, const LayerBuffers& buffers,
                   std::vector<double>& angles);

/// An Error naming `where` and the position when a row of x [L, D] holds NaN or infinity; position of row 0 is `first`.
Status check_finite(Backend& backend, ConstMatRef x, int first, std::string_view where);

/// The rows of a step that get logits.
constexpr int logit_rows(LogitsWanted wanted, int rows) {
  return wanted == LogitsWanted::kNone ? 0 : wanted == LogitsWanted::kLast ? 1 : rows;
}

/// What a step leaves behind, in memory of its own: hidden [L, D] and logits [0 | 1 | L, V].
struct ResultBuffers {
  MatRef hidden_LD;
  MatRef logits;

  static ResultBuffers carve(BufferCarver& carver, int rows, int hidden, int vocab, LogitsWanted wanted,
                             DType activation);
};

/// logits = head * hidden for the rows wanted, downloaded to `host`.
MatView<const float> head_logits(Backend& backend, StepClass step_class, ConstMatRef head, const ResultBuffers& results,
                                 std::vector<float>& host);

}  // namespace latte
