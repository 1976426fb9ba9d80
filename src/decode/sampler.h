#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/timeline.h"

namespace latte {

/// How a token is chosen. Temperature 0 is greedy. 0 or 1 switches a filter off as noted.
struct SamplingOptions {
  double temperature = 0;
  int top_k = 0;       ///< 0: all
  double top_p = 1;    ///< 1: all
  double min_p = 0;    ///< 0: all
  std::uint64_t seed = 0;
};

/// The one rule of plain and speculative decoding (spec/speculation.md): the token at a position is
/// argmax over allowed v of log p(v) + G(seed, position, v), G Gumbel noise from a counter-based generator; greedy is G = 0; ties
/// go to the lowest id. So the choice is a pure function of logits, options and position.
class Sampler {
 public:
  Sampler(SamplingOptions options, int vocab);

  /// The token at absolute index `position`. `logits` are finite, [vocab]. Allocates nothing after the first call.
  TokenId choose(std::span<const float> logits, std::int64_t position) const;

  const SamplingOptions& options() const { return options_; }

 private:
  SamplingOptions options_;
  mutable std::vector<std::int32_t> candidates_;
  mutable std::vector<double> scores_;
};

}  // namespace latte
