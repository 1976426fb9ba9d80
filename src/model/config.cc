#include "model/config.h"

#include <fmt/ranges.h>

#include <utility>

#include "base/fail.h"
#include "model/families/parts.h"
#include "model/family_name.h"
#include "model/key_reader.h"

namespace latte {
namespace {

/// latte reads float checkpoints and its own; one that another program quantised is refused by the name of its method.
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

/// What a configuration calls its model.
Status read_names(KeyReader& reader, ModelConfig& config) {
  config.model_type = reader.text("model_type", means(std::string()));
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
  return reader.ok() ? Status{} : Status{reader.error()};
}

}  // namespace

Result<ModelConfig> parse_config(const Json& json, std::string_view source) {
  if (!json.is_object())
    return fail(ErrorKind::kInvalidInput, "{}: arrived {}, expected an object", source, brief_json(json));
  KeyReader reader(json, source);
  ModelConfig config;
  if (const Status named = read_names(reader, config); !named) return named.error();
  if (const Status runs = refuse_known(config.model_type, config.architectures, source); !runs) return runs.error();
  const Result<std::optional<StoredQuantisation>> quantised = read_quantisation(json, source);
  if (!quantised) return quantised.error();
  if (!quantised->has_value()) {
    if (const Status plain = refuse_quantisation(json, source); !plain) return plain.error();
  }
  // A model with eyes keeps the text model's configuration one level down.
  const auto text_config = json.find("text_config");
  if (text_config != json.end() && text_config->is_object() && !json.contains("hidden_size")) {
    if (text_config->contains("text_config"))
      return fail(ErrorKind::kInvalidInput, "{}: key \"text_config\" inside itself", source);
    Result<ModelConfig> text_model = parse_config(*text_config, fmt::format("{} text_config", source));
    if (!text_model.ok() || !quantised->has_value()) return text_model;
    text_model->quantised = *quantised;
    if (Status same = check_matrix_sizes(**quantised, weight_spec(*text_model), source); !same.ok())
      return same.error();
    return text_model;
  }

  const Result<const Family*> family = resolve_family(config.model_type, config.architectures, source);
  if (!family) return family.error();
  config.family = (*family)->name;
  (*family)->read(reader, config);
  check_products(reader, config);
  if (!reader.ok()) return reader.error();
  config.assumed = reader.assumed_keys();
  config.quantised = *quantised;
  if (config.quantised.has_value()) {
    if (Status same = check_matrix_sizes(*config.quantised, weight_spec(config), source); !same.ok())
      return same.error();
  }
  return config;
}

Status apply_generation_config(const Json& json, std::string_view source, ModelConfig& config) {
  if (!json.is_object())
    return fail(ErrorKind::kInvalidInput, "{}: arrived {}, expected an object", source, brief_json(json));
  KeyReader reader(json, source);
  config.eos_ids = read_ids(reader, "eos_token_id", config.vocab, config.eos_ids);
  read_bos(reader, config);
  GenerationDefaults& defaults = config.generation;
  if (reader.find("do_sample") != nullptr) defaults.do_sample = reader.boolean("do_sample", means(false));
  if (reader.find("temperature") != nullptr) defaults.temperature = reader.non_negative("temperature", means(1.0), 1e6);
  if (reader.find("top_k") != nullptr) defaults.top_k = reader.integer("top_k", means(0), 0, kMaxConfigInt);
  if (reader.find("top_p") != nullptr) defaults.top_p = reader.non_negative("top_p", means(1.0), 1);
  if (reader.find("repetition_penalty") != nullptr)
    defaults.repetition_penalty = reader.non_negative("repetition_penalty", means(1.0), 1e6);
  if (!reader.ok()) return reader.error();
  return {};
}

std::vector<std::string> taken_for_granted(const ModelConfig& config, const std::string& file) {
  std::vector<std::string> sentences;
  if (!names_a_family(config.model_type)) {
    sentences.push_back(fmt::format("{}: model_type {} is unknown: it is read as {} for its architecture", file,
                                    quote_name(config.model_type), config.family));
  }
  if (!config.assumed.empty()) {
    sentences.push_back(fmt::format("{} leaves out keys, and the values that family {} documents are taken: {}", file,
                                    config.family, fmt::join(config.assumed, ", ")));
  }
  return sentences;
}

WeightSpec weight_spec(const ModelConfig& config) {
  return {.hidden = config.hidden,
          .vocab = config.vocab,
          .intermediate = config.intermediate,
          .moe_intermediate = config.moe_intermediate,
          .experts = config.moe.experts,
          .experts_key = config.moe.experts_key,
          .shared_experts = config.moe.shared,
          .router_bias = config.moe.experts > 0 && config.moe.bias,
          .attention = config.attention,
          .geometry = config.geometry,
          .q_lora_rank = config.q_lora_rank,
          .gqa = config.gqa,
          .qk_norm = config.qk_norm,
          .bias = config.attention_bias,
          .layers = config.layer_kinds,
          .layer_kinds_key = config.layer_kinds_key,
          .nextn_layers = config.nextn_layers,
          .nextn_kind = config.nextn_kind,
          .tie_word_embeddings = config.tie_word_embeddings,
          .final_norm_scale = config.final_norm_scale,
          .grouped = config.quantised.has_value() ? std::optional(config.quantised->storage) : std::nullopt};
}

}  // namespace latte
