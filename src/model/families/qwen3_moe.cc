#include <algorithm>

#include "base/fail.h"
#include "model/families/family.h"
#include "model/families/parts.h"

// Qwen3 with experts: a softmax router without bias, groups or shared expert. A layer has experts where
// decoder_sparse_step divides its number counted from 1 and mlp_only_layers does not list it.

namespace latte {
namespace {

constexpr std::string_view kQwen3MoeWords[] = {"qwen3_moe", "Qwen3MoeForCausalLM"};

bool lists(const Json* layers, int layer) {
  return layers != nullptr && std::any_of(layers->begin(), layers->end(), [layer](const Json& number) {
           return number.is_number_integer() && number.get<std::int64_t>() == layer;
         });
}

void read_expert_layers(KeyReader& reader, ModelConfig& config) {
  const int step = reader.integer("decoder_sparse_step", refused<int>(), 1, kMaxConfigInt);
  const Json* dense = reader.find("mlp_only_layers");
  if (dense != nullptr && !dense->is_array()) {
    reader.refuse("mlp_only_layers", brief_json(*dense), "a list of layer numbers");
    return;
  }
  config.layer_kinds_key = config.moe.experts == 0 ? "num_experts null" : fmt::format("decoder_sparse_step {}", step);
  if (dense != nullptr && !dense->empty()) config.layer_kinds_key += ", mlp_only_layers";
  for (int layer = 0; layer < config.layers; ++layer) {
    const bool sparse = config.moe.experts > 0 && (layer + 1) % step == 0 && !lists(dense, layer);
    if (sparse) config.layer_kinds[static_cast<std::size_t>(layer)] = FfnKind::kMoe;
  }
}

void read_qwen3_moe(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_gqa(reader, config);
  config.qk_norm = true;
  read_rope(reader, refused<double>(), config);
  read_experts(reader, {.experts_key = "num_experts", .shared = means(0), .scaling = means(1.0)}, config);
  config.moe.scoring = RouterScoring::kSoftmax;
  config.moe.bias = false;
  read_expert_layers(reader, config);
}

}  // namespace

extern const Family kQwen3MoeFamily;
const Family kQwen3MoeFamily{"qwen3_moe", kQwen3MoeWords, read_qwen3_moe};

}  // namespace latte
