#include "model/config.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "io/safetensors.h"
#include "model/family_name.h"
#include "model/key_reader.h"

namespace latte {
namespace {

constexpr int kMaxInt = std::numeric_limits<int>::max();
// Bounds on what is allocated per item before any weight is seen; an order of magnitude above the largest released
// models.
constexpr int kMaxLayers = 4096;
constexpr int kMaxHeads = 65536;
constexpr int kMaxHeadWidth = 1 << 20;
constexpr int kMaxExperts = 65536;
constexpr int kMaxNextnLayers = 64;
constexpr int kMaxEosIds = 1024;

/// latte reads float checkpoints only; a quantised one is refused by the name of its method.
Status refuse_quantisation(const Json& json, std::string_view source) {
  for (const char* key : {"quantization_config", "quantization"}) {
    const auto entry = json.find(key);
    if (entry == json.end() || entry->is_null()) continue;
    std::string method = "(no quant_method)";
    if (entry->is_object()) {
      for (const char* name : {"quant_method", "mode"}) {
        if (const auto word = entry->find(name); word != entry->end()) {
          method = brief_json(*word);
          break;
        }
      }
    }
    return fail(
        ErrorKind::kUnsupported,
        "{}: key \"{}\": arrived quant_method {}, expected an unquantised checkpoint (F32, BF16 or F16 weights)",
        source, key, method);
  }
  return {};
}

DType read_dtype(KeyReader& reader) {
  const char* key = reader.find("torch_dtype") != nullptr ? "torch_dtype" : "dtype";
  std::string word = reader.text(key, "bfloat16");
  if (word.starts_with("torch.")) word.erase(0, 6);
  if (word == "bfloat16" || word == "auto") return DType::kBf16;
  if (word == "float32" || word == "float") return DType::kF32;
  if (word == "float16" || word == "half") return DType::kF16;
  if (word == "float64" || word == "double") return DType::kF64;
  reader.refuse(key, quote_name(word), "bfloat16, float16, float32 or float64", ErrorKind::kUnsupported);
  return DType::kBf16;
}

YarnConfig read_yarn(KeyReader& reader, int context_length) {
  YarnConfig yarn;
  yarn.original_max = reader.positive("original_max_position_embeddings", context_length, kMaxInt);
  yarn.factor = reader.positive("factor", std::max(1.0, context_length / yarn.original_max), 1e6);
  if (yarn.factor < 1) reader.refuse("factor", fmt::format("{}", yarn.factor), "a number from 1 to 1e6");
  yarn.beta_fast = reader.positive("beta_fast", 32, 1e6);
  yarn.beta_slow = reader.positive("beta_slow", 1, 1e6);
  yarn.mscale = reader.non_negative("mscale", 1, 1e3);
  yarn.mscale_all_dim = reader.non_negative("mscale_all_dim", 0, 1e3);
  if (reader.find("attention_factor") != nullptr) yarn.attention_factor = reader.positive("attention_factor", 1, 1e3);
  yarn.truncate = reader.boolean("truncate", true);
  return yarn;
}

/// rope_parameters (new) or rope_scaling (old), null in both meaning none. The new one also holds rope_theta.
RopeConfig read_rope(KeyReader& reader, std::string_view source, int context_length) {
  RopeConfig rope;
  rope.theta = reader.positive("rope_theta", 10000, 1e12);
  rope.interleave = reader.boolean("rope_interleave", true);
  const char* key = reader.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* object = reader.find(key);
  const auto speeds_fall = [&rope] { return rope.theta > 1; };  // YaRN divides by the log of theta
  if (object == nullptr) {
    if (!speeds_fall()) reader.refuse("rope_theta", fmt::format("{}", rope.theta), "a number above 1");
    return rope;
  }
  if (!object->is_object()) {
    reader.refuse(key, brief_json(*object), "an object or null");
    return rope;
  }
  KeyReader part(*object, source, std::string(key) + ".");
  rope.theta = part.positive("rope_theta", rope.theta, 1e12);
  if (!speeds_fall()) part.refuse("rope_theta", fmt::format("{}", rope.theta), "a number above 1");
  const char* type_key = part.find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = part.text(type_key, "default");
  if (type == "yarn" || type == "deepseek_yarn") {
    rope.yarn = read_yarn(part, context_length);
  } else if (type != "default") {
    part.refuse(type_key, quote_name(type), "\"yarn\", \"deepseek_yarn\" or \"default\"", ErrorKind::kUnsupported);
  } else if (part.find(type_key) == nullptr && part.find("factor") != nullptr) {
    part.refuse("rope_type", "nothing beside a factor", "\"yarn\", \"deepseek_yarn\" or \"default\"");
  }
  reader.absorb(part);
  return rope;
}

MoeConfig read_moe(KeyReader& reader) {
  MoeConfig moe;
  moe.experts = reader.integer_or_none("n_routed_experts", 256, 0, 0, kMaxExperts);
  moe.scaling = reader.non_negative("routed_scaling_factor", 2.5, 1e6);
  moe.norm_topk_prob = reader.boolean("norm_topk_prob", true);
  const std::string scoring = reader.text("scoring_func", "sigmoid");
  if (scoring == "softmax") {
    moe.scoring = RouterScoring::kSoftmax;
  } else if (scoring != "sigmoid") {
    reader.refuse("scoring_func", quote_name(scoring), "\"sigmoid\" or \"softmax\"", ErrorKind::kUnsupported);
  }
  if (const std::string method = reader.text("topk_method", "noaux_tc"); method != "noaux_tc") {
    reader.refuse("topk_method", quote_name(method), "\"noaux_tc\"", ErrorKind::kUnsupported);
  }
  if (moe.experts == 0) return moe;
  moe.shared = reader.integer_or_none("n_shared_experts", 1, 0, 0, kMaxExperts);
  moe.n_group = reader.integer_or_none("n_group", 8, 1, 1, kMaxExperts);
  moe.topk_group = reader.integer_or_none("topk_group", moe.n_group == 1 ? 1 : 4, moe.n_group, 1, kMaxExperts);
  moe.top_k = reader.integer("num_experts_per_tok", 8, 1, kMaxExperts);
  if (moe.experts % moe.n_group != 0) {
    reader.refuse("n_group", std::to_string(moe.n_group), fmt::format("a divisor of n_routed_experts {}", moe.experts));
  } else if (moe.n_group > 1 && moe.experts / moe.n_group < 2) {
    reader.refuse("n_group", std::to_string(moe.n_group),
                  "groups of at least 2 experts: a group's score is its two best");
  } else if (moe.topk_group > moe.n_group) {
    reader.refuse("topk_group", std::to_string(moe.topk_group), fmt::format("at most n_group {}", moe.n_group));
  } else if (moe.top_k > moe.experts / moe.n_group * moe.topk_group) {
    reader.refuse(
        "num_experts_per_tok", std::to_string(moe.top_k),
        fmt::format("at most the {} experts of topk_group groups", moe.experts / moe.n_group * moe.topk_group));
  }
  return moe;
}

/// mlp_layer_types where given, else dense before first_k_dense_replace and off moe_layer_freq.
void read_layer_kinds(KeyReader& reader, ModelConfig& config) {
  const int first_moe = reader.integer("first_k_dense_replace", 3, 0, kMaxInt);
  const int every = reader.integer("moe_layer_freq", 1, 1, kMaxInt);
  const auto kind_of = [&](int layer) {
    return config.moe.experts > 0 && layer >= first_moe && layer % every == 0 ? FfnKind::kMoe : FfnKind::kDense;
  };
  for (int layer = 0; layer < config.layers; ++layer) config.layer_kinds.push_back(kind_of(layer));
  config.nextn_kind = kind_of(config.layers);

  const Json* types = reader.find("mlp_layer_types");
  if (types == nullptr) return;
  if (!types->is_array() || types->size() < config.layer_kinds.size()) {
    reader.refuse("mlp_layer_types", types->is_array() ? fmt::format("{} entries", types->size()) : brief_json(*types),
                  fmt::format("a list with one entry for each of {} layers", config.layers));
    return;
  }
  for (std::size_t layer = 0; layer < std::min(types->size(), config.layer_kinds.size() + 1); ++layer) {
    const Json& type = (*types)[layer];
    const bool sparse = type == "sparse";
    if (!sparse && type != "dense") {
      reader.refuse("mlp_layer_types", fmt::format("{} for layer {}", brief_json(type), layer),
                    "\"dense\" or \"sparse\"");
      return;
    }
    if (sparse && config.moe.experts == 0) {
      reader.refuse("mlp_layer_types", fmt::format("\"sparse\" for layer {}", layer),
                    "\"dense\": n_routed_experts is null");
      return;
    }
    const FfnKind kind = sparse ? FfnKind::kMoe : FfnKind::kDense;
    if (layer < config.layer_kinds.size()) {
      config.layer_kinds[layer] = kind;
    } else {
      config.nextn_kind = kind;
    }
  }
}

/// An id, a list of ids, or nothing.
std::vector<int> read_ids(KeyReader& reader, const char* key, std::vector<int> otherwise) {
  const Json* value = reader.find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_array()) return {reader.integer(key, 0, 0, kMaxInt)};
  std::vector<int> ids;
  for (const Json& id : *value) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxInt || ids.size() == kMaxEosIds) {
      reader.refuse(key, brief_json(id), fmt::format("at most {} token ids from 0 to {}", kMaxEosIds, kMaxInt));
      return otherwise;
    }
    ids.push_back(id.get<int>());
  }
  return ids;
}

/// Products of sizes that later code forms in int: rows of projections and of expert blocks.
void check_products(KeyReader& reader, const ModelConfig& config) {
  const auto check = [&](const char* key, std::int64_t a, std::int64_t b, const char* what) {
    if (a * b > kMaxInt) reader.refuse(key, fmt::format("{} = {}", what, a * b), fmt::format("at most {}", kMaxInt));
  };
  const MlaGeometry& g = config.geometry;
  check("num_attention_heads", g.heads, std::int64_t{g.n} + g.p, "heads * (nope + rope)");
  check("num_attention_heads", g.heads, std::int64_t{g.n} + g.v, "heads * (nope + value)");
  check("n_shared_experts", config.moe.shared, config.moe_intermediate, "shared experts * width");
  check("moe_intermediate_size", 2, config.moe_intermediate, "gate and up rows");
  check("hidden_size", 2, config.hidden, "the MTP layer's input");
}

Result<ModelConfig> parse_deepseek_v3(const Json& json, std::string_view source, ModelConfig config) {
  KeyReader reader(json, source);
  if (const std::string act = reader.text("hidden_act", "silu"); act != "silu") {
    reader.refuse("hidden_act", quote_name(act), "\"silu\"", ErrorKind::kUnsupported);
  }
  if (reader.boolean("attention_bias", false))
    reader.refuse("attention_bias", "true", "false", ErrorKind::kUnsupported);
  config.dtype = read_dtype(reader);
  config.vocab = reader.integer("vocab_size", 129280, 1, kMaxInt);
  config.hidden = reader.integer("hidden_size", 7168, 1, kMaxInt);
  config.intermediate = reader.integer("intermediate_size", 18432, 1, kMaxInt);
  config.moe_intermediate = reader.integer("moe_intermediate_size", 2048, 1, kMaxInt);
  config.layers = reader.integer("num_hidden_layers", 61, 1, kMaxLayers);
  config.nextn_layers = reader.integer_or_none("num_nextn_predict_layers", 1, 1, 0, kMaxNextnLayers);
  config.geometry = {.heads = reader.integer("num_attention_heads", 128, 1, kMaxHeads),
                     .r = reader.integer("kv_lora_rank", 512, 1, kMaxHeadWidth),
                     .p = reader.integer("qk_rope_head_dim", 64, 2, kMaxHeadWidth),
                     .n = reader.integer("qk_nope_head_dim", 128, 1, kMaxHeadWidth),
                     .v = reader.integer("v_head_dim", 128, 1, kMaxHeadWidth)};
  if (config.geometry.p % 2 != 0)
    reader.refuse("qk_rope_head_dim", std::to_string(config.geometry.p), "an even number");
  config.q_lora_rank = reader.integer_or_none("q_lora_rank", 1536, 0, 0, kMaxInt);
  config.context_length = reader.integer("max_position_embeddings", 4096, 1, kMaxInt);
  config.rope = read_rope(reader, source, config.context_length);
  config.moe = read_moe(reader);
  config.rms_norm_eps = reader.positive("rms_norm_eps", 1e-6, 1);
  config.latent_norm_eps = 1e-6;  // the norms of the latents keep their own default whatever rms_norm_eps says
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", false);
  if (reader.find("bos_token_id") != nullptr) config.bos_id = reader.integer("bos_token_id", 0, 0, kMaxInt);
  config.eos_ids = read_ids(reader, "eos_token_id", {1});
  if (reader.ok()) read_layer_kinds(reader, config);
  check_products(reader, config);
  if (!reader.ok()) return reader.error();
  return config;
}

}  // namespace

Result<ModelConfig> parse_config(const Json& json, std::string_view source) {
  if (!json.is_object())
    return fail(ErrorKind::kInvalidInput, "{}: arrived {}, expected an object", source, brief_json(json));
  if (const Status plain = refuse_quantisation(json, source); !plain) return plain.error();
  // A model with eyes keeps the text model's configuration one level down.
  const auto text_config = json.find("text_config");
  if (text_config != json.end() && text_config->is_object() && !json.contains("hidden_size")) {
    if (text_config->contains("text_config"))
      return fail(ErrorKind::kInvalidInput, "{}: key \"text_config\" inside itself", source);
    return parse_config(*text_config, fmt::format("{} text_config", source));
  }

  KeyReader reader(json, source);
  ModelConfig config;
  config.model_type = reader.text("model_type", "");
  if (const Json* architectures = reader.find("architectures"); architectures != nullptr) {
    if (!architectures->is_array()) reader.refuse("architectures", brief_json(*architectures), "a list of names");
    for (const Json& name : *architectures) {
      if (name.is_string()) {
        config.architectures.push_back(name.get<std::string>());
      } else {
        reader.refuse("architectures", brief_json(name), "a list of names");
      }
    }
  }
  if (!reader.ok()) return reader.error();
  Result<std::string> family = resolve_family(config.model_type, config.architectures, source);
  if (!family) return family.error();
  config.family = *std::move(family);
  return parse_deepseek_v3(json, source, std::move(config));
}

Status apply_generation_config(const Json& json, std::string_view source, ModelConfig& config) {
  if (!json.is_object())
    return fail(ErrorKind::kInvalidInput, "{}: arrived {}, expected an object", source, brief_json(json));
  KeyReader reader(json, source);
  config.eos_ids = read_ids(reader, "eos_token_id", config.eos_ids);
  if (reader.find("bos_token_id") != nullptr) config.bos_id = reader.integer("bos_token_id", 0, 0, kMaxInt);
  GenerationDefaults& defaults = config.generation;
  if (reader.find("do_sample") != nullptr) defaults.do_sample = reader.boolean("do_sample", false);
  if (reader.find("temperature") != nullptr) defaults.temperature = reader.non_negative("temperature", 1, 1e6);
  if (reader.find("top_k") != nullptr) defaults.top_k = reader.integer("top_k", 0, 0, kMaxInt);
  if (reader.find("top_p") != nullptr) defaults.top_p = reader.non_negative("top_p", 1, 1);
  if (!reader.ok()) return reader.error();
  return {};
}

Result<ModelConfig> load_config_file(const std::string& path) {
  const Result<Json> json = read_json_file(path);
  if (!json) return json.error();
  return parse_config(*json, path);
}

Result<ModelConfig> load_config(const std::string& directory) {
  const std::filesystem::path folder(directory);
  Result<ModelConfig> config = load_config_file((folder / "config.json").string());
  if (!config) return config;
  const std::string generation_path = (folder / "generation_config.json").string();
  std::error_code ignored;
  if (!std::filesystem::exists(generation_path, ignored)) return config;
  const Result<Json> generation = read_json_file(generation_path);
  if (!generation) return generation.error();
  if (const Status applied = apply_generation_config(*generation, generation_path, *config); !applied)
    return applied.error();
  return config;
}

WeightSpec weight_spec(const ModelConfig& config) {
  return {.hidden = config.hidden,
          .vocab = config.vocab,
          .intermediate = config.intermediate,
          .moe_intermediate = config.moe_intermediate,
          .experts = config.moe.experts,
          .shared_experts = config.moe.shared,
          .router_bias = config.moe.experts > 0,
          .geometry = config.geometry,
          .q_lora_rank = config.q_lora_rank,
          .layers = config.layer_kinds,
          .nextn_layers = config.nextn_layers,
          .nextn_kind = config.nextn_kind,
          .tie_word_embeddings = config.tie_word_embeddings};
}

}  // namespace latte
