#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "io/json_file.h"
#include "latte/error.h"
#include "weights/quantise_plan.h"
#include "weights/weight_spec.h"

namespace latte {

/// What config.json of a folder that latte quantised says about it, under "quantization_config"
/// (docs/weight-formats.md).
struct StoredQuantisation {
  std::string word;  ///< of the choice: "q4:q8-attn"
  GroupedStorage storage;
  std::string source_weights;        ///< weights_digest() of the model that it was made from, in hexadecimal
  std::string weights;               ///< weights_digest() of the folder's own tensors
  std::map<std::string, int> sizes;  ///< matrix_sizes() of the model: panels do not show where their padding begins
};

/// The numbers that the shapes of quantised matrices follow from, by their usual names in config.json.
std::map<std::string, int> matrix_sizes(const WeightSpec& spec);

/// Whether a folder's config.json, which `spec` was read from, still has the sizes of its matrices. Errors: one of them
/// differs; `source` names the file.
Status check_matrix_sizes(const StoredQuantisation& quantisation, const WeightSpec& spec, std::string_view source);

/// The value of "quantization_config".
Json quantisation_json(const StoredQuantisation& quantisation);

/// Reads it. Nothing: another program's, or none. Errors: another version or layout of the panels (quantise again), a
/// key that is missing or makes no sense; `source` names the file.
Result<std::optional<StoredQuantisation>> read_quantisation(const Json& config, std::string_view source);

}  // namespace latte
