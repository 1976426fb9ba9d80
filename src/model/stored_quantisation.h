#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json_file.h"
#include "latte/error.h"
#include "weights/quantise_plan.h"

namespace latte {

/// What config.json of a folder that latte quantised says about it, under "quantization_config"
/// (docs/weight-formats.md).
struct StoredQuantisation {
  std::string word;  ///< of the choice: "q4:q8-attn"
  GroupedStorage storage;
  std::string source_weights;  ///< weights_digest() of the model that it was made from, in hexadecimal
  std::string weights;         ///< weights_digest() of the folder's own tensors
};

/// The value of "quantization_config".
Json quantisation_json(const StoredQuantisation& quantisation);

/// Reads it. Nothing: another program's, or none. Errors: another version or layout of the panels (quantise again), a
/// key that is missing or makes no sense; `source` names the file.
Result<std::optional<StoredQuantisation>> read_quantisation(const Json& config, std::string_view source);

}  // namespace latte
