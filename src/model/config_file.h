#pragma once

#include <string>

#include "latte/error.h"
#include "model/config.h"

namespace latte {

/// Reads `directory`/config.json, and generation_config.json when it is there.
/// Errors name the file and the key, what arrived and what was expected.
Result<ModelConfig> load_config(const std::string& directory);

}  // namespace latte
