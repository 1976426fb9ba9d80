#pragma once

#include <vector>

#include "decode/logit_rules.h"
#include "decode/open_model.h"
#include "decode/sampler.h"
#include "latte/options.h"
#include "model/timeline.h"

namespace latte {

/// The options of one run with every choice made: the model's suggestions, a seed, the tokens that stop.
struct RunSettings {
  SamplingOptions sampling;
  LogitRules rules;
  std::vector<TokenId> stop_ids;
};

/// Errors: kInvalidInput with the option, its value and its range.
Result<RunSettings> settle_run(const OpenModel& model, const RunOptions& options);

}  // namespace latte
