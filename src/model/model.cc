#include "model/model.h"

#include <utility>

#include "io/checkpoint.h"
#include "model/config_file.h"
#include "model/fingerprint.h"
#include "model/rope.h"
#include "weights/loader.h"

namespace latte {

Result<Model> load_model(const std::string& directory, LoadFor purpose) {
  Result<ModelConfig> config = load_config(directory);
  if (!config.ok()) return config.error();
  return load_model(directory, std::move(*config), purpose);
}

Result<Model> load_model(const std::string& directory, ModelConfig config, LoadFor purpose) {
  const Result<Json> facts = read_json_file(directory + "/config.json");
  if (!facts.ok()) return facts.error();
  Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint.ok()) return checkpoint.error();
  const WeightSpec spec = weight_spec(config);
  Result<ModelWeights> weights = load_weights(std::move(*checkpoint), spec, purpose);
  if (!weights.ok()) {
    Error error = weights.error();
    for (const std::string& taken : taken_for_granted(config, "config.json")) error.message += "; " + taken;
    return error;
  }
  Model model{.config = std::move(config),
              .weights = std::move(*weights),
              .softmax_scale = 1,
              .config_digest = config_digest(*facts)};
  model.softmax_scale = softmax_scale(model.config);
  return model;
}

}  // namespace latte
