#include "decode/run_record.h"

#include <utility>

#include "decode/token_ranking.h"

namespace latte {

RunRecord::RunRecord(const Tokenizer* tokenizer, std::span<const TokenId> prompt, const RunOptions& options,
                     const TokenCallback& on_token)
    : tokenizer_(tokenizer),
      on_token_(on_token),
      logprob_count_(options.logprobs),
      output_(tokenizer, options.stop, prompt) {}

Proceed RunRecord::take(const Emission& emission) {
  const std::string piece = output_.push(emission.token);
  if (logprob_count_.has_value()) logprobs_.push_back(logprobs_of(emission, *logprob_count_));
  const TokenLogprobs* const logprobs = logprob_count_.has_value() ? &logprobs_.back() : nullptr;
  const bool wanted = !on_token_ || on_token_({.id = emission.token, .text = piece, .logprobs = logprobs});
  return output_.stopped() ? Proceed::kStop : wanted ? Proceed::kGoOn : Proceed::kCancel;
}

void RunRecord::finish(TokenId last) {
  if (const std::string rest = output_.finish(); !rest.empty() && on_token_) on_token_({.id = last, .text = rest});
}

void RunRecord::move_to(GenerateResult& result) {
  result.text = output_.text();
  result.logprobs = std::move(logprobs_);
}

TokenLogprobs RunRecord::logprobs_of(const Emission& emission, int count) const {
  const TokenRanking ranking = rank_token(emission.logits, emission.token, count);
  TokenLogprobs logprobs{.chosen = named(emission.token, ranking.logprob), .top = {}};
  for (const RankedToken& ranked : ranking.top) logprobs.top.push_back(named(ranked.token, ranked.logprob));
  return logprobs;
}

TokenLogprob RunRecord::named(TokenId id, double logprob) const {
  return {.id = id, .token = std::string(tokenizer_ == nullptr ? "" : tokenizer_->token_bytes(id)), .logprob = logprob};
}

}  // namespace latte
