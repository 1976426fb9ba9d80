#include "model/families/parts.h"

#include <algorithm>
#include <span>

#include "base/fail.h"

namespace latte {
namespace {

DType read_dtype(KeyReader& reader) {
  const char* key = reader.find("torch_dtype") != nullptr ? "torch_dtype" : "dtype";
  std::string word = reader.text(key, means(std::string("bfloat16")));
  if (word.starts_with("torch.")) word.erase(0, 6);
  if (word == "bfloat16" || word == "auto") return DType::kBf16;
  if (word == "float32" || word == "float") return DType::kF32;
  if (word == "float16" || word == "half") return DType::kF16;
  if (word == "float64" || word == "double") return DType::kF64;
  reader.refuse(key, quote_name(word), "bfloat16, float16, float32 or float64", ErrorKind::kUnsupported);
  return DType::kBf16;
}

/// Some families name windows that none of their released models uses.
void refuse_windows(KeyReader& reader) {
  reader.only("use_sliding_window", false);
  const Json* types = reader.find("layer_types");
  if (types == nullptr) return;
  const bool full = types->is_array() && std::all_of(types->begin(), types->end(), [](const Json& type) {
                      return type.is_string() && type.get_ref<const std::string&>() == "full_attention";
                    });
  if (!full)
    reader.refuse("layer_types", brief_json(*types), "\"full_attention\" for every layer", ErrorKind::kUnsupported);
}

void check_groups(KeyReader& reader, const char* experts_key, const MoeConfig& moe) {
  if (moe.experts % moe.n_group != 0) {
    reader.refuse("n_group", std::to_string(moe.n_group), fmt::format("a divisor of {} {}", experts_key, moe.experts));
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
}

bool is_token_id(const Json& value, int vocab) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() < static_cast<std::uint64_t>(vocab);
  return value.is_number_integer() && value.get<std::int64_t>() >= 0 && value.get<std::int64_t>() < vocab;
}

}  // namespace

void read_sizes(KeyReader& reader, const SizeDefaults& defaults, ModelConfig& config) {
  reader.only_word("hidden_act", "silu");
  config.dtype = read_dtype(reader);
  config.vocab = reader.size("vocab_size", defaults.vocab, kMaxConfigInt);
  config.hidden = reader.size("hidden_size", defaults.hidden, kMaxConfigInt);
  config.intermediate = reader.size("intermediate_size", defaults.intermediate, kMaxConfigInt);
  config.layers = reader.size("num_hidden_layers", defaults.layers, kMaxLayers);
  config.context_length = reader.size("max_position_embeddings", refused<int>(), kMaxConfigInt);
  config.rms_norm_eps = reader.positive("rms_norm_eps", defaults.rms_norm_eps, 1);
  config.tie_word_embeddings = reader.boolean("tie_word_embeddings", defaults.tie_word_embeddings);
  read_bos(reader, config);
  config.eos_ids = read_ids(reader, "eos_token_id", config.vocab, {});
  config.layer_kinds.assign(static_cast<std::size_t>(config.layers), FfnKind::kDense);
}

void read_mla(KeyReader& reader, const MlaDefaults& defaults, ModelConfig& config) {
  config.attention = AttentionKind::kMla;
  MlaGeometry& g = config.geometry;
  g.heads = reader.size("num_attention_heads", defaults.heads, kMaxHeads);
  if (const int groups = reader.size("num_key_value_heads", means(g.heads), kMaxHeads); groups != g.heads) {
    reader.refuse("num_key_value_heads", std::to_string(groups),
                  fmt::format("num_attention_heads {}: latent attention has keys and values for every head", g.heads));
  }
  g.r = reader.size("kv_lora_rank", defaults.r, kMaxHeadWidth);
  g.p = reader.integer("qk_rope_head_dim", defaults.p, 2, kMaxHeadWidth);
  g.n = reader.size("qk_nope_head_dim", defaults.n, kMaxHeadWidth);
  g.v = reader.size("v_head_dim", defaults.v, kMaxHeadWidth);
  if (g.p % 2 != 0) reader.refuse("qk_rope_head_dim", std::to_string(g.p), "an even number");
  config.q_lora_rank = reader.integer_or_none("q_lora_rank", defaults.q_lora_rank, 0, 0, kMaxConfigInt);
  const bool bias = reader.boolean("attention_bias", means(false));
  config.attention_bias = {bias, bias};
}

void read_gqa(KeyReader& reader, ModelConfig& config) {
  config.attention = AttentionKind::kGqa;
  GqaGeometry& g = config.gqa;
  g.heads = reader.size("num_attention_heads", refused<int>(), kMaxHeads);
  g.kv_heads = reader.size("num_key_value_heads", means(g.heads), kMaxHeads);
  if (g.heads % g.kv_heads != 0) {
    reader.refuse("num_key_value_heads", std::to_string(g.kv_heads),
                  fmt::format("a divisor of num_attention_heads {}", g.heads));
  }
  if (reader.find("head_dim") == nullptr && config.hidden % g.heads != 0) {
    reader.refuse("head_dim", "nothing",
                  fmt::format("a width: hidden_size {} is no multiple of {} heads", config.hidden, g.heads));
  }
  g.head_dim = reader.size("head_dim", means(config.hidden / g.heads), kMaxHeadWidth);
  if (g.head_dim % 2 != 0) reader.refuse("head_dim", std::to_string(g.head_dim), "an even number");
  const bool bias = reader.boolean("attention_bias", means(false));
  config.attention_bias = {bias, bias};
  refuse_windows(reader);
}

void read_experts(KeyReader& reader, const ExpertDefaults& defaults, ModelConfig& config) {
  MoeConfig& moe = config.moe;
  moe.experts_key = defaults.experts_key;
  moe.experts = reader.integer_or_none(defaults.experts_key, defaults.experts, 0, 0, kMaxExperts);
  if (moe.experts == 0) return;
  moe.scaling = reader.non_negative("routed_scaling_factor", defaults.scaling, 1e6);
  moe.norm_topk_prob = reader.boolean("norm_topk_prob", defaults.norm_topk_prob);
  config.moe_intermediate = reader.size("moe_intermediate_size", defaults.moe_intermediate, kMaxConfigInt);
  moe.shared = reader.integer_or_none("n_shared_experts", defaults.shared, 0, 0, kMaxExperts);
  moe.n_group = reader.integer_or_none("n_group", defaults.n_group, 1, 1, kMaxExperts);
  moe.topk_group = reader.size("topk_group", moe.n_group == 1 ? means(1) : defaults.topk_group, kMaxExperts);
  moe.top_k = reader.size("num_experts_per_tok", defaults.top_k, kMaxExperts);
  check_groups(reader, defaults.experts_key, moe);
}

void read_layer_kinds(KeyReader& reader, const Absent<int>& first_moe, ModelConfig& config) {
  if (config.moe.experts == 0) config.layer_kinds_key = fmt::format("{} null", config.moe.experts_key);
  const Json* types = reader.find("mlp_layer_types");
  const bool counted = types == nullptr && config.moe.experts > 0;
  const int first = reader.integer("first_k_dense_replace", counted ? first_moe : means(0), 0, kMaxConfigInt);
  const int every = reader.integer("moe_layer_freq", means(1), 1, kMaxConfigInt);
  const auto kind_of = [&](int layer) {
    return config.moe.experts > 0 && layer >= first && layer % every == 0 ? FfnKind::kMoe : FfnKind::kDense;
  };
  for (int layer = 0; layer < config.layers; ++layer)
    config.layer_kinds[static_cast<std::size_t>(layer)] = kind_of(layer);
  config.nextn_kind = kind_of(config.layers);
  if (counted) {
    config.layer_kinds_key = fmt::format("first_k_dense_replace {}", first);
    if (every > 1) config.layer_kinds_key += fmt::format(", moe_layer_freq {}", every);
  }
  if (types == nullptr) return;
  if (config.moe.experts > 0) config.layer_kinds_key = "mlp_layer_types";
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
                    fmt::format("\"dense\": {} is null", config.moe.experts_key));
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

void read_nextn(KeyReader& reader, ModelConfig& config) {
  config.nextn_layers = reader.integer_or_none("num_nextn_predict_layers", means(1), 1, 0, kMaxNextnLayers);
}

std::vector<int> read_ids(KeyReader& reader, const char* key, int vocab, std::vector<int> otherwise) {
  const Json* value = reader.find(key);
  if (value == nullptr) return otherwise;
  const std::span<const Json> given = value->is_array() ? std::span<const Json>(value->get_ref<const Json::array_t&>())
                                                        : std::span<const Json>(value, 1);
  std::vector<int> ids;
  for (const Json& id : given) {
    if (!is_token_id(id, vocab) || ids.size() == kMaxEosIds) {
      reader.refuse(key, brief_json(id),
                    fmt::format("at most {} token ids from 0 to {}: vocab_size is {}", kMaxEosIds, vocab - 1, vocab));
      return otherwise;
    }
    ids.push_back(id.get<int>());
  }
  return ids;
}

void read_bos(KeyReader& reader, ModelConfig& config) {
  const char* key = "bos_token_id";
  const Json* value = reader.find(key);
  if (value == nullptr) return;
  if (is_token_id(*value, config.vocab)) {
    config.bos_id = value->get<int>();
  } else {
    reader.refuse(key, brief_json(*value),
                  fmt::format("a token id from 0 to {}: vocab_size is {}", config.vocab - 1, config.vocab));
  }
}

void check_products(KeyReader& reader, const ModelConfig& config) {
  const auto check = [&](const char* key, std::int64_t a, std::int64_t b, const char* what) {
    if (a * b > kMaxConfigInt)
      reader.refuse(key, fmt::format("a value that makes {} {}", what, a * b),
                    fmt::format("at most {}", kMaxConfigInt));
  };
  const MlaGeometry& g = config.geometry;
  check("num_attention_heads", g.heads, std::int64_t{g.n} + g.p, "heads * (nope + rope)");
  check("num_attention_heads", g.heads, std::int64_t{g.n} + g.v, "heads * (nope + value)");
  check("num_attention_heads", config.gqa.heads, config.gqa.head_dim, "heads * head_dim");
  check("num_key_value_heads", config.gqa.kv_heads, 2 * std::int64_t{config.gqa.head_dim}, "keys and values of a row");
  check("n_shared_experts", config.moe.shared, config.moe_intermediate, "shared experts * width");
  check("moe_intermediate_size", 2, config.moe_intermediate, "gate and up rows");
  check("hidden_size", 2, config.hidden, "the width of an MTP layer's input");
}

}  // namespace latte
