#pragma once

#include <span>
#include <vector>

#include "model/timeline.h"

namespace latte {

struct RankedToken {
  TokenId token = 0;
  double logprob = 0;  ///< natural logarithm of the probability
};

/// What the model thought of a token at its place.
struct TokenRanking {
  double logprob = 0;                 ///< of the token
  std::vector<RankedToken> top = {};  ///< the most likely tokens, best first; equal ones by id
};

/// Log probabilities of `token` and of the `count` most likely tokens under softmax(logits), summed in double in the
/// order of the ids: a pure function of the row. Tokens of probability 0 are not in the list. `logits` [vocab] are the
/// model's own: temperature, filters, bias and penalties have no part in them.
TokenRanking rank_token(std::span<const float> logits, TokenId token, int count);

}  // namespace latte
