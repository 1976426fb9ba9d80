#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decode/speculative_loop.h"
#include "decode/text_output.h"
#include "latte/options.h"
#include "latte/session.h"

namespace latte {

/// What one run of generate hands out while it runs and keeps for its result: the text up to a stop text, and log
/// probabilities where they are asked for.
class RunRecord {
 public:
  /// `prompt`: the ids that the run continues. Tokenizer, options and callback outlive the record; `tokenizer` may be
  /// null, `on_token` empty.
  RunRecord(const Tokenizer* tokenizer, std::span<const TokenId> prompt, const RunOptions& options,
            const TokenCallback& on_token);

  /// Takes a token and tells the caller.
  Proceed take(const Emission& emission);
  /// The run ended after `last`: the caller gets the text that was held back.
  void finish(TokenId last);

  /// A stop text came.
  bool stopped() const { return output_.stopped(); }
  /// Moves text and log probabilities there.
  void move_to(GenerateResult& result);

 private:
  TokenLogprobs logprobs_of(const Emission& emission, int count) const;
  TokenLogprob named(TokenId id, double logprob) const;

  const Tokenizer* tokenizer_;
  const TokenCallback& on_token_;
  std::optional<int> logprob_count_;
  TextOutput output_;
  std::vector<TokenLogprobs> logprobs_;
};

}  // namespace latte
