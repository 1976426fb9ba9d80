#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "latte/error.h"
#include "model/timeline.h"

namespace latte {

/// How a token is chosen. Temperature 0 is greedy. 0 or 1 switches a filter off as noted.
struct SamplingOptions {
  double temperature = 0;
  int top_k = 0;     ///< 0: all
  double top_p = 1;  ///< 1: all
  double min_p = 0;  ///< 0: all
  std::uint64_t seed = 0;
};

/// Refuses, naming the option, what no distribution can be made of.
Status check_sampling(const SamplingOptions& options);

/// The one rule of plain and speculative decoding: the token at a position is
/// argmax over allowed v of log p(v) + G(seed, position, v), G Gumbel noise from a counter-based generator; greedy is G
/// = 0; ties go to the lowest id. So the choice is a pure function of logits, options and position, and has the
/// distribution p.
///
/// Bias and penalties have acted on the logits before, at every temperature (TokenChooser). Filters act in the order
/// temperature, top-k, top-p, min-p; equal values are kept by lowest id. Noise belongs to the
/// token id, so a filter changes the choice only by what it forbids.
class Sampler {
 public:
  /// `options` have passed check_sampling.
  Sampler(SamplingOptions options, int vocab);

  /// The token at absolute index `position`. `logits` are [vocab] and finite (-inf forbids a token): whoever computed
  /// them has looked. Allocates nothing after the first call. One thread at a time.
  TokenId choose(std::span<const float> logits, std::int64_t position) const;

  const SamplingOptions& options() const { return options_; }

 private:
  struct Peak {
    TokenId token = 0;
    float logit = 0;
  };

  Peak survey(std::span<const float> logits) const;
  bool keeps_all(std::size_t vocab) const;
  void keep_top_k(std::span<const float> logits) const;
  void keep_above(std::span<const float> logits, double lowest_logit) const;
  void keep_top_p(std::span<const float> logits, float peak) const;
  double scaled(float logit) const { return static_cast<double>(logit) * inverse_temperature_; }

  SamplingOptions options_;
  double inverse_temperature_ = 0;
  mutable std::vector<float> block_max_;          // largest logit of every kBlock ids
  mutable std::vector<std::int32_t> candidates_;  // what the filters allow
  mutable std::vector<std::int32_t> kept_;        // of them, while top-p chooses
};

}  // namespace latte
