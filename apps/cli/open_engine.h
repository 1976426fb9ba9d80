#pragma once

#include "arguments.h"
#include "latte/engine.h"
#include "progress_line.h"

namespace latte::cli {

/// What the options say of an engine. Errors name the word that is none.
Result<EngineOptions> engine_options(const Arguments& arguments);

/// The engine that the options ask for; warnings go to standard error. `arguments` hold --model. `measures`: opening
/// may measure both forms of the attention, where no profile is stored.
Result<Engine> open_engine(const Arguments& arguments, ProgressLine& progress, bool measures = true);

/// --cache-type, or what --kv-bits means.
Result<CacheType> cache_choice(const Arguments& arguments);

}  // namespace latte::cli
