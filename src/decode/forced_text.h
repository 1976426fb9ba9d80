#pragma once

#include <span>
#include <vector>

#include "model/timeline.h"

namespace latte {

/// A timeline whose choices are those of a given text: the logits of position i have token i + 1 of the text on top.
/// Everything else, hidden rows and cost included, is the model's, so that the decoding loop replays the text with the
/// drafter it has. `inner` and `text` outlive it.
class ForcedTextTimeline final : public Timeline {
 public:
  ForcedTextTimeline(Timeline& inner, std::span<const TokenId> text) : inner_(inner), text_(text) {}

  int length() const override { return inner_.length(); }
  int context() const override { return inner_.context(); }
  int vocab() const override { return inner_.vocab(); }
  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override;
  bool can_rewind_to(int length) const override { return inner_.can_rewind_to(length); }
  Status rewind_to(int length) override { return inner_.rewind_to(length); }

 private:
  Timeline& inner_;
  std::span<const TokenId> text_;
  std::vector<float> logits_;
};

}  // namespace latte
