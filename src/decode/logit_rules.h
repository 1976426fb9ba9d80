#pragma once

#include <span>
#include <vector>

#include "decode/token_history.h"
#include "latte/error.h"
#include "latte/options.h"
#include "model/timeline.h"

namespace latte {

/// What changes logits before the sampler sees them. The defaults change nothing.
struct LogitRules {
  std::vector<LogitBias> bias = {};
  double repeat_penalty = 1;
  int repeat_last_n = 64;
  double presence_penalty = 0;
  double frequency_penalty = 0;

  bool penalises() const { return repeat_penalty != 1 || presence_penalty != 0 || frequency_penalty != 0; }
  bool idle() const { return bias.empty() && !penalises(); }
};

/// Refuses, naming the option, the value and the range, what no text can be made with. `vocab`: ids of the model.
Status check_logit_rules(const LogitRules& rules, int vocab);

/// Applies bias, then the repeat penalty, then presence and frequency penalty to one row of logits [vocab], in place.
/// Ids beyond the row (a draft model may have a smaller vocabulary) are passed over. The result depends on the row and
/// the counts alone.
void apply_logit_rules(const LogitRules& rules, const TokenHistory& history, std::span<float> logits);

}  // namespace latte
