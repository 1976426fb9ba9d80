#pragma once

#include <string>
#include <vector>

#include "latte/error.h"

namespace latte {

/// The directory of a model given by its path, by a config.json or .safetensors file in it, by the name of an embedded
/// model, or as org/name in the local Hugging Face cache. A name is looked for in $LATTE_MODELS, ./models, and models
/// beside the running program and above it. Errors: kNotFound with the places looked at and the names found there;
/// kUnsupported for another kind of file.
Result<std::string> find_model(const std::string& model);

/// Names that find_model would find, in alphabetical order.
std::vector<std::string> embedded_models();

}  // namespace latte
