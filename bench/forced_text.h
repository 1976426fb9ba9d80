#pragma once

#include <string>
#include <vector>

#include "model/timeline.h"
#include "text/tokenizer.h"

namespace latte::bench {

/// A timeline whose choices are those of a given text: the logits of position i have token i + 1 of the text on top.
/// Everything else, hidden rows and cost included, is the model's, so that the decoding loop replays the text with the
/// drafter it has.
class ForcedTextTimeline final : public Timeline {
 public:
  ForcedTextTimeline(Timeline& inner, const std::vector<TokenId>& text) : inner_(inner), text_(text) {}

  int length() const override { return inner_.length(); }
  int context() const override { return inner_.context(); }
  int vocab() const override { return inner_.vocab(); }
  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override;
  bool can_rewind_to(int length) const override { return inner_.can_rewind_to(length); }
  Status rewind_to(int length) override { return inner_.rewind_to(length); }

 private:
  Timeline& inner_;
  const std::vector<TokenId>& text_;
  std::vector<float> logits_;
};

/// The documents of a held-out file (separated by NUL), each as ids with BOS, cut to `most` tokens.
Result<std::vector<std::vector<TokenId>>> read_documents(const Tokenizer& tokenizer, const std::string& path,
                                                         std::size_t most);

}  // namespace latte::bench
