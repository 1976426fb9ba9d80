#include "decode/token_chooser.h"

namespace latte {

TokenChooser::TokenChooser(const Sampler& sampler, const LogitRules& rules, std::span<const TokenId> prompt)
    : sampler_(sampler),
      rules_(rules),
      position_(static_cast<std::int64_t>(prompt.size())),
      history_(prompt, rules.repeat_penalty == 1 ? 0 : rules.repeat_last_n) {}

TokenId TokenChooser::choose(std::span<const float> logits) {
  if (rules_.idle()) return sampler_.choose(logits, position_);
  changed_.assign(logits.begin(), logits.end());
  apply_logit_rules(rules_, history_, changed_);
  return sampler_.choose(changed_, position_);
}

void TokenChooser::push(TokenId token) {
  ++position_;
  if (rules_.penalises()) history_.push(token);
}

void TokenChooser::pop() {
  --position_;
  if (rules_.penalises()) history_.pop();
}

}  // namespace latte
