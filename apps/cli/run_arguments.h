#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.h"
#include "latte/engine.h"
#include "latte/error.h"
#include "latte/options.h"

namespace latte::cli {

/// How a session speculates. Errors are usage errors.
Result<SessionOptions> session_options(const Arguments& arguments);

/// One term of --logit-bias: a number for one id, or for every stop token of the model.
struct BiasTerm {
  std::optional<std::int32_t> id;  ///< nothing: eos
  double bias = 0;
};

/// Terms of "15043+1", "2-inf", "7=-0.5", "eos-inf", several of them with commas between or in several arguments.
/// Errors: the term that is none, and what one looks like.
Result<std::vector<BiasTerm>> parse_logit_bias(const std::vector<std::string>& arguments);

/// What the command line says about one run; where it is silent, what the model suggests.
RunOptions run_options(const Arguments& arguments, const std::vector<BiasTerm>& bias, const EngineInfo& info);

}  // namespace latte::cli
