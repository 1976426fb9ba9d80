#pragma once

#include <string>

#include "latte/session.h"

namespace latte::cli {

/// The result as the one JSON object of `generate --json`.
std::string generate_json(const GenerateResult& result);

/// The lines under a generated text: speeds, speculation, paths, memory.
std::string generate_summary(const GenerateResult& result);

}  // namespace latte::cli
