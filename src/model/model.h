#pragma once

#include <string>

#include "io/checksum.h"
#include "latte/error.h"
#include "model/config.h"
#include "weights/loader.h"
#include "weights/model_weights.h"

namespace latte {

/// A loaded model: configuration, weights (mapped where the type allows) and the factor of q.k. Read-only after
/// load, so that any number of sequences may share it.
struct Model {
  ModelConfig config;
  ModelWeights weights;
  double softmax_scale = 1;
  Digest config_digest;  ///< what config.json says, see fingerprint.h

  bool has_mtp() const { return !weights.mtp.empty(); }
};

/// Loads a model directory (config.json, safetensors). Errors name file and tensor or key.
Result<Model> load_model(const std::string& directory, LoadFor purpose = LoadFor::kCompute);

/// The same with a configuration of the caller's instead of the folder's own.
Result<Model> load_model(const std::string& directory, ModelConfig config, LoadFor purpose = LoadFor::kCompute);

}  // namespace latte
