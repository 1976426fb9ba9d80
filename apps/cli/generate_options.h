#pragma once

#include "arguments.h"
#include "latte/engine.h"
#include "latte/options.h"

namespace latte::cli {

/// How generate and chat speculate and sample, from the options they share. Errors are usage errors.
Result<SessionOptions> session_options(const Arguments& arguments);
RunOptions generate_options(const Arguments& arguments, const EngineInfo& info);

}  // namespace latte::cli
