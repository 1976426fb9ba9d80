#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/logit_rules.h"
#include "decode/sampler.h"
#include "decode/token_history.h"
#include "model/timeline.h"

namespace latte {

/// Chooses the tokens of one text, position by position: the sampler's rule on logits changed by bias and by penalties
/// for the tokens before. So the choice is a pure function of logits, options and history, whose length is the
/// position. The same chooser serves the target's rows and the drafters', which put their guesses on trial.
///
/// With idle rules it only counts the position: logits are neither copied nor is history kept.
class TokenChooser {
 public:
  /// `sampler` and `rules` outlive the chooser; both have passed their checks. The tokens of `prompt` count for the
  /// repeat penalty's window alone.
  TokenChooser(const Sampler& sampler, const LogitRules& rules, std::span<const TokenId> prompt);

  /// The token at position(). `logits` [vocab] as the model gave them; they are not changed.
  TokenId choose(std::span<const float> logits);

  /// Absolute index of the token that is chosen next.
  std::int64_t position() const { return position_; }
  const Sampler& sampler() const { return sampler_; }

  /// The token at position() is decided; the next choice is the one after it.
  void push(TokenId token);

  /// Tokens that may not stay: what was pushed during its life is taken back at its end, exactly.
  class Trial {
   public:
    explicit Trial(TokenChooser& chooser) : chooser_(chooser), start_(chooser.position_) {}
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    ~Trial() {
      while (chooser_.position_ > start_) chooser_.pop();
    }

   private:
    TokenChooser& chooser_;
    std::int64_t start_;
  };

 private:
  void pop();

  const Sampler& sampler_;
  const LogitRules& rules_;
  std::int64_t position_;
  TokenHistory history_;  // empty while no penalty counts anything
  std::vector<float> changed_;
};

}  // namespace latte
