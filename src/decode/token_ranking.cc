#include "decode/token_ranking.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/contract.h"

namespace latte {

TokenRanking rank_token(std::span<const float> logits, TokenId token, int count) {
  expects(token >= 0 && static_cast<std::size_t>(token) < logits.size() && count >= 0,
          "a token that is ranked is in the vocabulary");
  const double peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - peak);
  const double log_sum = std::log(sum);
  const auto logprob_of = [&](std::size_t id) { return logits[id] - peak - log_sum; };

  TokenRanking ranking{.logprob = logprob_of(static_cast<std::size_t>(token))};
  std::vector<RankedToken>& top = ranking.top;
  const auto most = static_cast<std::size_t>(count);
  for (std::size_t id = 0; id < logits.size() && most > 0; ++id) {
    const double logprob = logprob_of(id);
    if (!std::isfinite(logprob) || (top.size() == most && !(logprob > top.back().logprob))) continue;
    const auto place = std::upper_bound(top.begin(), top.end(), logprob,
                                        [](double value, const RankedToken& other) { return value > other.logprob; });
    top.insert(place, {static_cast<TokenId>(id), logprob});
    if (top.size() > most) top.pop_back();
  }
  return ranking;
}

}  // namespace latte
