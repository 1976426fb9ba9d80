#include "decode/forced_text.h"

namespace latte {

Result<StepResult> ForcedTextTimeline::step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) {
  const int first = inner_.length();
  Result<StepResult> result = inner_.step(ids, role, wanted);
  if (!result.ok() || result->logits.rows == 0) return result;
  const MatView<const float> logits = result->logits;
  logits_.assign(logits.data, logits.data + logits.rows * logits.cols);
  const std::int64_t skipped = static_cast<std::int64_t>(ids.size()) - logits.rows;
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const auto next = static_cast<std::size_t>(first + skipped + row + 1);
    if (next < text_.size()) logits_[static_cast<std::size_t>(row * logits.cols + text_[next])] = 1e30f;
  }
  return StepResult{{logits_.data(), logits.rows, logits.cols, logits.cols}, result->hidden};
}

}  // namespace latte
