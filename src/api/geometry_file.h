#pragma once

#include <string>

#include "latte/error.h"
#include "model/config.h"

namespace latte {

/// Reads a config.json for its geometry alone: a released one names how its own weights are quantised, which changes no
/// size and is passed over here.
Result<ModelConfig> read_geometry(const std::string& path);

}  // namespace latte
