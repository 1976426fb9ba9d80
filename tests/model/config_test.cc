#include "model/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "model/config_file.h"
#include "support/refusal.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

constexpr const char* kFamilies = LATTE_SOURCE_DIR "/tests/data/families/";

Json small() { return *read_json_file(std::string(kFamilies) + "deepseek_v3/config.json"); }

/// What has no documented default, and nothing else.
Json without_defaults() {
  return {{"model_type", "deepseek_v3"}, {"max_position_embeddings", 4096}, {"rope_theta", 10000}};
}

std::string refusal(const Json& json) { return test::refusal(parse_config(json, "config.json")); }

/// The small model's configuration with one key changed.
std::string refusal_with(const char* key, const Json& value) {
  Json json = small();
  json[key] = value;
  return refusal(json);
}

std::string refusal_with_rope(const Json& change) {
  Json json = small();
  json["rope_scaling"].update(change);
  return refusal(json);
}

TEST(ParseConfig, SmallModelIsReadWhole) {
  const Result<ModelConfig> config = parse_config(small(), "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->family, "deepseek_v3");
  EXPECT_EQ(config->model_type, "deepseek_v3");
  EXPECT_EQ(config->architectures, std::vector<std::string>{"DeepseekV3ForCausalLM"});
  EXPECT_EQ(config->dtype, DType::kF32);
  EXPECT_EQ(config->vocab, 272);
  EXPECT_EQ(config->hidden, 48);
  EXPECT_EQ(config->intermediate, 80);
  EXPECT_EQ(config->moe_intermediate, 16);
  EXPECT_EQ(config->layers, 4);
  EXPECT_EQ(config->nextn_layers, 1);
  EXPECT_EQ(config->geometry, (MlaGeometry{.heads = 3, .r = 32, .p = 16, .n = 24, .v = 20}));
  EXPECT_EQ(config->q_lora_rank, 40);
  EXPECT_EQ(config->context_length, 64);
  ASSERT_TRUE(config->rope.yarn.has_value());
  EXPECT_EQ(config->rope.yarn->factor, 4);
  EXPECT_EQ(config->rope.yarn->original_max, 16);
  EXPECT_EQ(config->rope.yarn->beta_fast, 0.3);
  EXPECT_EQ(config->rope.yarn->beta_slow, 0.03);
  EXPECT_EQ(config->rope.yarn->mscale_all_dim, 1);
  EXPECT_EQ(config->moe.experts, 16);
  EXPECT_EQ(config->moe.top_k, 4);
  EXPECT_EQ(config->moe.n_group, 4);
  EXPECT_EQ(config->moe.topk_group, 2);
  EXPECT_EQ(config->moe.shared, 1);
  EXPECT_EQ(config->moe.scaling, 2.5);
  EXPECT_EQ(config->layer_kinds, (std::vector<FfnKind>{FfnKind::kDense, FfnKind::kMoe, FfnKind::kMoe, FfnKind::kMoe}));
  EXPECT_EQ(config->nextn_kind, FfnKind::kMoe);
  EXPECT_EQ(config->bos_id, 0);
  EXPECT_EQ(config->eos_ids, std::vector<int>{1});
}

TEST(ParseConfig, MissingKeysTakeTheFamilysDocumentedValuesAndSaySo) {
  const Result<ModelConfig> config = parse_config(without_defaults(), "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->geometry, kDeepSeekV3);
  EXPECT_EQ(config->vocab, 129280);
  EXPECT_EQ(config->hidden, 7168);
  EXPECT_EQ(config->intermediate, 18432);
  EXPECT_EQ(config->moe_intermediate, 2048);
  EXPECT_EQ(config->layers, 61);
  EXPECT_EQ(config->q_lora_rank, 1536);
  EXPECT_EQ(config->nextn_layers, 1);
  EXPECT_EQ(config->moe.experts, 256);
  EXPECT_EQ(config->moe.top_k, 8);
  EXPECT_EQ(config->moe.n_group, 8);
  EXPECT_EQ(config->moe.topk_group, 4);
  EXPECT_EQ(config->moe.scaling, 2.5);
  EXPECT_TRUE(config->moe.norm_topk_prob);
  EXPECT_EQ(config->moe.scoring, RouterScoring::kSigmoid);
  EXPECT_EQ(config->layer_kinds[2], FfnKind::kDense);
  EXPECT_EQ(config->layer_kinds[3], FfnKind::kMoe);
  EXPECT_EQ(config->rms_norm_eps, 1e-6);
  EXPECT_EQ(config->rope.theta, 10000);
  EXPECT_TRUE(config->rope.interleave);
  EXPECT_FALSE(config->rope.yarn.has_value());
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_TRUE(config->eos_ids.empty());
  const std::vector<std::string>& assumed = config->assumed;
  for (const char* entry :
       {"num_experts_per_tok 8", "routed_scaling_factor 2.5", "rms_norm_eps 1e-06", "topk_group 4",
        "first_k_dense_replace 3", "q_lora_rank 1536", "norm_topk_prob true", "scoring_func sigmoid"}) {
    EXPECT_EQ(std::count(assumed.begin(), assumed.end(), entry), 1) << entry;
  }
  const std::vector<std::string> said = taken_for_granted(*config, "/models/x/config.json");
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].find("/models/x/config.json leaves out keys"), 0u) << said[0];
  EXPECT_NE(said[0].find("num_experts_per_tok 8"), std::string::npos) << said[0];
  EXPECT_TRUE(parse_config(small(), "config.json")->assumed.empty());
}

TEST(ParseConfig, MissingKeyWithoutADocumentedDefaultIsRefused) {
  for (const char* key : {"rope_theta", "max_position_embeddings"}) {
    for (const bool null : {false, true}) {
      Json json = small();
      json.erase(key);
      if (null) json[key] = nullptr;
      const std::string start =
          "config.json: key \"" + std::string(key) + "\": arrived " + (null ? "null" : "nothing") + ", expected ";
      EXPECT_EQ(refusal(json).find(start), 0u) << refusal(json);
      EXPECT_NE(refusal(json).find("no value can be assumed for it"), std::string::npos) << refusal(json);
    }
  }
  for (const char* key : {"factor", "original_max_position_embeddings"}) {
    Json json = small();
    json["rope_scaling"].erase(key);
    EXPECT_EQ(refusal(json).find("config.json: key \"rope_scaling." + std::string(key) + "\": arrived nothing"), 0u)
        << refusal(json);
  }
}

TEST(ParseConfig, NullIsNoDefault) {
  for (const char* key : {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                          "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "rms_norm_eps",
                          "norm_topk_prob", "scoring_func", "num_experts_per_tok", "routed_scaling_factor",
                          "topk_group", "moe_intermediate_size", "first_k_dense_replace"}) {
    const std::string message = refusal_with(key, nullptr);
    EXPECT_EQ(message.find("config.json: key \"" + std::string(key) + "\": arrived null, expected "), 0u) << message;
  }
  for (const char* key : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
    const std::string message = refusal_with_rope({{key, nullptr}});
    EXPECT_EQ(message.find("config.json: key \"rope_scaling." + std::string(key) + "\": arrived null"), 0u) << message;
  }
}

TEST(ParseConfig, TokenIdsAreOfTheVocabulary) {
  EXPECT_EQ(refusal_with("eos_token_id", 272),
            "config.json: key \"eos_token_id\": arrived 272, expected at most 1024 token ids from 0 to 271: vocab_size "
            "is 272");
  EXPECT_EQ(refusal_with("eos_token_id", {1, 300}).find("config.json: key \"eos_token_id\": arrived 300"), 0u);
  EXPECT_EQ(refusal_with("bos_token_id", 272),
            "config.json: key \"bos_token_id\": arrived 272, expected a token id from 0 to 271: vocab_size is 272");
  EXPECT_EQ(refusal_with("eos_token_id", 271), "(accepted)");
}

TEST(ParseConfig, KeyHeadsOfLatentAttentionAreItsHeads) {
  EXPECT_EQ(refusal_with("num_key_value_heads", 1),
            "config.json: key \"num_key_value_heads\": arrived 1, expected num_attention_heads 3: latent attention has "
            "keys and values for every head");
  EXPECT_EQ(refusal_with("num_key_value_heads", nullptr), "(accepted)");
}

TEST(ParseConfig, NullMeansNoneWhereItIsAWord) {
  Json json = small();
  for (const char* key :
       {"rope_scaling", "rope_parameters", "rope_interleave", "hidden_act", "attention_bias", "tie_word_embeddings",
        "eos_token_id", "bos_token_id", "mlp_layer_types", "quantization_config", "torch_dtype", "q_lora_rank",
        "n_shared_experts", "n_group", "num_nextn_predict_layers", "num_key_value_heads", "topk_method"}) {
    json[key] = nullptr;
  }
  json["topk_group"] = 1;
  const Result<ModelConfig> none = parse_config(json, "config.json");
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_TRUE(none->assumed.empty());
  EXPECT_EQ(none->q_lora_rank, 0);
  EXPECT_EQ(none->moe.shared, 0);
  EXPECT_EQ(none->moe.n_group, 1);
  EXPECT_EQ(none->nextn_layers, 1);  // presence of the tensors decides
  json["n_routed_experts"] = nullptr;
  const Result<ModelConfig> dense = parse_config(json, "config.json");
  ASSERT_TRUE(dense.ok()) << dense.error().message;
  EXPECT_EQ(std::count(dense->layer_kinds.begin(), dense->layer_kinds.end(), FfnKind::kDense), 4);
  EXPECT_EQ(weight_spec(*dense).experts, 0);
  EXPECT_FALSE(weight_spec(*dense).router_bias);
}

TEST(ParseConfig, LatentNormsIgnoreRmsNormEps) {
  const Result<ModelConfig> config = load_config(std::string(kFamilies) + "moonlight");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rms_norm_eps, 1e-5);
  EXPECT_EQ(config->latent_norm_eps, 1e-6);
  EXPECT_EQ(config->q_lora_rank, 0);
}

TEST(ParseConfig, RopeParametersEqualsRopeScaling) {
  Json json = small();
  Json rope = json["rope_scaling"];
  rope["rope_type"] = rope["type"];
  rope.erase("type");
  rope["rope_theta"] = 50000.0;
  json.erase("rope_scaling");
  json.erase("rope_theta");
  json["rope_parameters"] = rope;
  const Result<ModelConfig> config = parse_config(json, "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->rope.theta, 50000);
  ASSERT_TRUE(config->rope.yarn.has_value());
  EXPECT_EQ(config->rope.yarn->beta_slow, 0.03);
  json["rope_parameters"] = {{"rope_theta", 1e6}, {"rope_type", "default"}};
  const Result<ModelConfig> plain = parse_config(json, "config.json");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->rope.theta, 1e6);
  EXPECT_FALSE(plain->rope.yarn.has_value());
}

TEST(ParseConfig, YarnKeysHaveDefaults) {
  Json json = small();
  json["rope_scaling"] = {{"type", "deepseek_yarn"}, {"original_max_position_embeddings", 16}, {"factor", 4}};
  const Result<ModelConfig> config = parse_config(json, "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->assumed, (std::vector<std::string>{"rope_scaling.beta_fast 32", "rope_scaling.beta_slow 1",
                                                       "rope_scaling.mscale 1", "rope_scaling.mscale_all_dim 0"}));
  EXPECT_EQ(config->rope.yarn->beta_fast, 32);
  EXPECT_EQ(config->rope.yarn->mscale, 1);
  EXPECT_EQ(config->rope.yarn->mscale_all_dim, 0);
  EXPECT_TRUE(config->rope.yarn->truncate);
  EXPECT_FALSE(config->rope.yarn->attention_factor.has_value());
}

TEST(ParseConfig, LayerKindsFollowFrequencyAndTypes) {
  Json json = small();
  json["moe_layer_freq"] = 2;
  EXPECT_EQ(parse_config(json, "c")->layer_kinds,
            (std::vector<FfnKind>{FfnKind::kDense, FfnKind::kDense, FfnKind::kMoe, FfnKind::kDense}));
  json["mlp_layer_types"] = {"sparse", "dense", "dense", "sparse", "dense"};
  const Result<ModelConfig> typed = parse_config(json, "c");
  ASSERT_TRUE(typed.ok()) << typed.error().message;
  EXPECT_EQ(typed->layer_kinds, (std::vector<FfnKind>{FfnKind::kMoe, FfnKind::kDense, FfnKind::kDense, FfnKind::kMoe}));
  EXPECT_EQ(typed->nextn_kind, FfnKind::kDense);
}

TEST(ParseConfig, TextConfigOfALargerModelIsRead) {
  const Json json = {{"model_type", "kimi_k25"}, {"text_config", small()}, {"vision_config", Json::object()}};
  const Result<ModelConfig> config = parse_config(json, "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->hidden, 48);
  Json broken = json;
  broken["text_config"]["vocab_size"] = 0;
  EXPECT_EQ(refusal(broken),
            "config.json text_config: key \"vocab_size\": arrived 0, expected an integer from 1 to 2147483647");
}

TEST(ParseConfig, FamilyIsKnownByTypeOrArchitecture) {
  for (const char* type : {"deepseek_v3", "kimi_k2", "joyai_llm_flash", "something_new", ""}) {
    Json json = small();
    json["model_type"] = type;
    const Result<ModelConfig> config = parse_config(json, "config.json");
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->family, "deepseek_v3");
    const bool known = std::string_view(type).find("thing") == std::string_view::npos && *type != '\0';
    EXPECT_EQ(taken_for_granted(*config, "d/config.json").size(), known ? 0u : 1u) << type;
  }
  Json json = small();
  json["model_type"] = "something_new";
  EXPECT_EQ(
      taken_for_granted(*parse_config(json, "c"), "d/config.json"),
      std::vector<std::string>{
          "d/config.json: model_type \"something_new\" is unknown: it is read as deepseek_v3 for its architecture"});
}

TEST(ParseConfig, UnknownFamilyNamesTheNearest) {
  Json json = small();
  json["model_type"] = "deepseek_v33";
  json["architectures"] = {"DeepseekV33ForCausalLM"};
  EXPECT_EQ(refusal(json),
            "config.json: model_type \"deepseek_v33\" (architecture \"DeepseekV33ForCausalLM\") is not a family latte "
            "knows; the nearest is "
            "\"deepseek_v3\"");
  EXPECT_EQ(refusal(Json::object()),
            "config.json: neither model_type nor architectures, expected the config.json of a model: they name its "
            "family");
}

TEST(ParseConfig, QuantisedCheckpointIsRefusedByMethod) {
  EXPECT_EQ(refusal_with("quantization_config", {{"quant_method", "fp8"}}),
            "config.json: key \"quantization_config\": arrived quant_method \"fp8\", expected an unquantised "
            "checkpoint (F32, BF16 or F16 "
            "weights)");
  EXPECT_NE(refusal_with("quantization", {{"bits", 4}, {"mode", "affine"}})
                .find("key \"quantization\": arrived quant_method \"affine\""),
            std::string::npos);
}

/// What latte quantize writes.
/// Of small().
Json own_quantisation() {
  const ModelConfig config = *parse_config(small(), "config.json");
  return {{"quant_method", "latte"},
          {"version", 1},
          {"group_layout", 1},
          {"quantize", "q4:q8-attn"},
          {"source_dtype", "F16"},
          {"source_weights", std::string(32, 'a')},
          {"weights", std::string(32, '7')},
          {"sizes", matrix_sizes(weight_spec(config))}};
}

TEST(ParseConfig, OwnQuantisationIsRead) {
  Json json = small();
  EXPECT_FALSE(parse_config(json, "config.json")->quantised.has_value());
  json["quantization_config"] = own_quantisation();
  const Result<ModelConfig> config = parse_config(json, "config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  ASSERT_TRUE(config->quantised.has_value());
  EXPECT_EQ(config->quantised->word, "q4:q8-attn");
  EXPECT_EQ(config->quantised->storage.plan, (QuantisePlan{DType::kQ8, DType::kQ4, DType::kQ8}));
  EXPECT_EQ(config->quantised->storage.source_dtype, DType::kF16);
  EXPECT_EQ(config->quantised->weights, std::string(32, '7'));
  EXPECT_EQ(quantisation_json(*config->quantised), own_quantisation());
  EXPECT_TRUE(weight_spec(*config).grouped.has_value());
}

TEST(ParseConfig, SizesThatTheMatricesWereNotQuantisedWithAreRefused) {
  for (const auto& [key, size] : own_quantisation()["sizes"].items()) {
    Json changed = own_quantisation();
    changed["sizes"][key] = size.get<int>() + 1;
    const std::string other = refusal_with("quantization_config", changed);
    EXPECT_NE(other.find(key + " is "), std::string::npos) << other;
    changed["sizes"].erase(key);
    const std::string lacking = refusal_with("quantization_config", changed);
    EXPECT_NE(lacking.find("lacks " + key), std::string::npos) << lacking;
  }
}

TEST(ParseConfig, OwnQuantisationThatMakesNoSenseIsRefusedByKey) {
  const auto refused_with = [](const char* key, const Json& value) {
    Json changed = own_quantisation();
    changed[key] = value;
    return refusal_with("quantization_config", changed);
  };
  const std::string start = "config.json: key \"quantization_config.";
  EXPECT_EQ(refused_with("group_layout", 2),
            start +
                "group_layout\": arrived 2, expected 1, which this build reads: run latte quantize on the original "
                "model again");
  EXPECT_EQ(refused_with("version", 2).find(start + "version\": arrived 2, expected 1, which this build reads"), 0u);
  EXPECT_EQ(refused_with("quantize", "q5"), start + "quantize\": arrived \"q5\", expected q8, q4, q4:q8-attn");
  EXPECT_EQ(refused_with("source_dtype", "Q4"),
            start + "source_dtype\": arrived \"Q4\", expected F64, F32, F16 or BF16");
  for (const Json& broken : {Json(nullptr), Json(-1), Json(1.5), Json("1"), Json::object(), Json(1e300)}) {
    for (const char* key :
         {"version", "group_layout", "quantize", "source_dtype", "source_weights", "weights", "sizes"})
      EXPECT_EQ(refused_with(key, broken).find(start + key), 0u) << key << " " << broken;
  }
  for (const std::string& digits : {std::string(31, 'a'), std::string(33, 'a'), std::string(32, 'G'), std::string()})
    EXPECT_EQ(refused_with("weights", digits).find(start + "weights\": arrived "), 0u) << digits;
  for (const Json& broken : {Json(nullptr), Json(-1), Json(1.5), Json("1"), Json::object(), Json(1e300)}) {
    EXPECT_EQ(refused_with("sizes", {{"vocab_size", broken}}).find(start + "sizes.vocab_size\": arrived "), 0u)
        << broken;
  }
  Json short_one = own_quantisation();
  short_one.erase("weights");
  EXPECT_EQ(refusal_with("quantization_config", short_one).find(start + "weights\""), 0u);
  EXPECT_NE(refusal_with("quantization_config", {{"quant_method", 7}}).find("arrived quant_method 7"),
            std::string::npos);
}

TEST(ParseConfig, WhatTheFamilyDoesNotHaveIsRefusedByName) {
  EXPECT_EQ(refusal_with("hidden_act", "gelu"), "config.json: key \"hidden_act\": arrived \"gelu\", expected \"silu\"");
  EXPECT_EQ(refusal_with("topk_method", "greedy"),
            "config.json: key \"topk_method\": arrived \"greedy\", expected \"noaux_tc\"");
  EXPECT_EQ(refusal_with("scoring_func", "tanh"),
            "config.json: key \"scoring_func\": arrived \"tanh\", expected \"sigmoid\" or \"softmax\"");
  EXPECT_EQ(refusal_with("torch_dtype", "int8"),
            "config.json: key \"torch_dtype\": arrived \"int8\", expected bfloat16, float16, float32 or float64");
  EXPECT_EQ(refusal_with_rope({{"type", "dynamic"}}),
            "config.json: key \"rope_scaling.type\": arrived \"dynamic\", expected \"default\", \"yarn\", "
            "\"deepseek_yarn\", \"llama3\" or \"longrope\"");
  EXPECT_EQ(refusal_with_rope({{"type", "longrope"}}),
            "config.json: key \"rope_scaling.short_factor\": arrived nothing, expected a list of 8 numbers above 0");
}

TEST(ParseConfig, EveryNumberHasItsLimits) {
  const Json bad_sizes[] = {0,
                            -1,
                            1.5,
                            "48",
                            true,
                            2147483648u,
                            -9223372036854775807LL,
                            18446744073709551615ULL,
                            Json::array(),
                            Json::object()};
  for (const char* key :
       {"vocab_size", "hidden_size", "intermediate_size", "moe_intermediate_size", "num_hidden_layers",
        "num_attention_heads", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
        "max_position_embeddings", "moe_layer_freq", "num_experts_per_tok", "n_group", "topk_group"}) {
    for (const Json& value : bad_sizes) {
      const std::string message = refusal_with(key, value);
      EXPECT_EQ(message.find("config.json: key \"" + std::string(key) + "\": arrived "), 0u) << message;
      EXPECT_NE(message.find(", expected an integer from "), std::string::npos) << message;
    }
  }
  for (const char* key : {"q_lora_rank", "n_routed_experts", "n_shared_experts", "num_nextn_predict_layers",
                          "first_k_dense_replace", "bos_token_id", "eos_token_id"}) {
    const std::string message = refusal_with(key, -1);
    EXPECT_EQ(message.find("config.json: key \"" + std::string(key) + "\": arrived -1, expected"), 0u) << message;
  }
  for (const char* key : {"rms_norm_eps", "rope_theta"}) {
    for (const Json& value : {Json(0), Json(-1.5), Json(1e300), Json("x")}) {
      const std::string message = refusal_with(key, value);
      EXPECT_EQ(message.find("config.json: key \"" + std::string(key) + "\": arrived "), 0u) << message;
    }
  }
  for (const char* key : {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow", "attention_factor"}) {
    const std::string message = refusal_with_rope({{key, 0}});
    EXPECT_EQ(message.find("config.json: key \"rope_scaling." + std::string(key) +
                           "\": arrived 0, expected a number above 0"),
              0u)
        << message;
  }
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    const std::string message = refusal_with_rope({{key, -1}});
    EXPECT_EQ(message.find("config.json: key \"rope_scaling." + std::string(key) +
                           "\": arrived -1, expected a number from 0"),
              0u)
        << message;
  }
  EXPECT_NE(refusal_with("qk_rope_head_dim", 1 << 21).find("from 2 to 1048576"), std::string::npos);
  EXPECT_NE(refusal_with("num_hidden_layers", 4097).find("from 1 to 4096"), std::string::npos);
  EXPECT_NE(refusal_with("n_routed_experts", 65537).find("from 0 to 65536"), std::string::npos);
}

TEST(ParseConfig, SizesHaveToFitTogether) {
  const auto expect_refused = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  expect_refused(refusal_with("n_group", 3), "key \"n_group\": arrived 3, expected a divisor of n_routed_experts 16");
  expect_refused(refusal_with("n_group", 16), "key \"n_group\": arrived 16, expected groups of at least 2 experts");
  expect_refused(refusal_with("topk_group", 5), "key \"topk_group\": arrived 5, expected at most n_group 4");
  expect_refused(refusal_with("num_experts_per_tok", 9),
                 "key \"num_experts_per_tok\": arrived 9, expected at most the 8 experts");
  expect_refused(refusal_with("qk_rope_head_dim", 15), "key \"qk_rope_head_dim\": arrived 15, expected an even number");
  Json wide = small();
  wide["num_attention_heads"] = wide["num_key_value_heads"] = 65536;
  wide["qk_nope_head_dim"] = 1 << 20;
  expect_refused(refusal(wide),
                 "key \"num_attention_heads\": arrived a value that makes heads * (nope + rope) 68720525312, expected "
                 "at most 2147483647");
  expect_refused(refusal_with("hidden_size", 2147483647),
                 "key \"hidden_size\": arrived a value that makes the width of an MTP layer's input");
  expect_refused(refusal_with("mlp_layer_types", {"dense"}),
                 "key \"mlp_layer_types\": arrived 1 entries, expected a list with one entry");
  expect_refused(refusal_with("mlp_layer_types", {"dense", "moe", "sparse", "sparse"}),
                 "arrived \"moe\" for layer 1, expected \"dense\" or");
  expect_refused(refusal_with("mlp_layer_types", 3), "key \"mlp_layer_types\": arrived 3");
  expect_refused(refusal_with("rope_theta", 1), "key \"rope_theta\": arrived 1, expected a number above 1");
  expect_refused(refusal_with_rope({{"factor", 0.5}}),
                 "key \"rope_scaling.factor\": arrived 0.5, expected a number from 1");
  expect_refused(refusal_with("rope_scaling", {{"factor", 4}}),
                 "key \"rope_scaling.rope_type\": arrived nothing beside a factor");
  expect_refused(refusal_with("rope_scaling", 4), "key \"rope_scaling\": arrived 4, expected an object or null");
  expect_refused(refusal_with("architectures", "x"), "key \"architectures\": arrived \"x\", expected a list of names");
  expect_refused(refusal_with("architectures", {1}), "key \"architectures\": arrived 1, expected a list of names");
  expect_refused(refusal_with("model_type", 3), "key \"model_type\": arrived 3, expected a string");
  expect_refused(refusal_with("tie_word_embeddings", "yes"),
                 "key \"tie_word_embeddings\": arrived \"yes\", expected true or false");
  expect_refused(refusal(Json::array()), "config.json: arrived [...], expected an object");
}

TEST(LoadConfig, GenerationConfigOverridesEosAndKeepsSampling) {
  const test::TempFolder folder;
  folder.write("config.json", small().dump());
  const Result<ModelConfig> alone = load_config(folder.path());
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->eos_ids, std::vector<int>{1});
  EXPECT_FALSE(alone->generation.temperature.has_value());
  folder.write("generation_config.json",
               R"({"eos_token_id":[7,9],"do_sample":true,"temperature":0.6,"top_p":0.95,"top_k":20})");
  const Result<ModelConfig> both = load_config(folder.path());
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(both->eos_ids, (std::vector<int>{7, 9}));
  EXPECT_EQ(both->generation.do_sample, true);
  EXPECT_EQ(both->generation.temperature, 0.6);
  EXPECT_EQ(both->generation.top_p, 0.95);
  EXPECT_EQ(both->generation.top_k, 20);
  folder.write("generation_config.json", R"({"eos_token_id":[7,-1]})");
  EXPECT_EQ(load_config(folder.path()).error().message,
            folder.file("generation_config.json") +
                ": key \"eos_token_id\": arrived -1, expected at most 1024 token ids from 0 to 271: vocab_size is 272");
  folder.write("generation_config.json", R"({"bos_token_id":272})");
  EXPECT_EQ(load_config(folder.path())
                .error()
                .message.find(folder.file("generation_config.json") + ": key \"bos_token_id\": arrived 272"),
            0u);
  folder.write("generation_config.json", R"({"temperature":-1})");
  EXPECT_NE(load_config(folder.path()).error().message.find("key \"temperature\": arrived -1"), std::string::npos);
  folder.write("generation_config.json", R"({"repetition_penalty":1.05})");
  EXPECT_EQ(load_config(folder.path())->generation.repetition_penalty, 1.05);
  folder.write("generation_config.json", R"({"repetition_penalty":"1.05"})");
  EXPECT_NE(test::refusal(load_config(folder.path())).find("key \"repetition_penalty\": arrived \"1.05\""),
            std::string::npos);
}

TEST(LoadConfig, ALinkThatLeadsNowhereIsNoAbsentFile) {
  const test::TempFolder folder;
  std::filesystem::create_symlink("gone", folder.file("config.json"));
  EXPECT_NE(test::refusal(load_config(folder.path())).find("config.json: a link to something that is not there"),
            std::string::npos);
  std::filesystem::remove(folder.file("config.json"));
  folder.write("config.json", small().dump());
  std::filesystem::create_symlink("gone", folder.file("generation_config.json"));
  EXPECT_NE(
      test::refusal(load_config(folder.path())).find("generation_config.json: a link to something that is not there"),
      std::string::npos);
}

TEST(LoadConfig, ANulByteIsNoEndOfTheFile) {
  const test::TempFolder folder;
  folder.write("config.json", small().dump() + std::string(2, '\0'));
  EXPECT_NE(test::refusal(load_config(folder.path())).find("config.json: NUL byte at byte"), std::string::npos);
}

TEST(LoadConfig, MissingEmptyAndBrokenFilesAreNamed) {
  const test::TempFolder folder;
  EXPECT_EQ(load_config(folder.path()).error().message,
            folder.path() +
                ": no config.json in it, expected a model folder: config.json, *.safetensors and the "
                "tokenizer's files as they are published");
  folder.write("config.json", "");
  EXPECT_EQ(load_config(folder.path()).error().message,
            folder.file("config.json") + ": the file has 0 bytes, expected JSON; fetch it again");
  folder.write("config.json", "{\"hidden_size\": 48");
  EXPECT_NE(load_config(folder.path()).error().message.find("config.json: not valid JSON at byte 19"),
            std::string::npos);
  folder.write("config.json", small().dump());
  folder.write("generation_config.json", "[]");
  EXPECT_EQ(load_config(folder.path()).error().message,
            folder.file("generation_config.json") + ": arrived [...], expected an object");
}

TEST(LoadConfig, ReleasedConfigurationsOfTheFamilyAreRead) {
  const char* data = std::getenv("LATTE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  const std::filesystem::path models = std::filesystem::path(data) / "models";
  for (const char* name : {"configs/deepseek-v3", "configs/kimi-k2", "configs/moonlight-16b-a3b",
                           "families/deepseek_v3_negbias", "latte-tiny", "latte-tiny-draft"}) {
    const Result<ModelConfig> config = load_config((models / name).string());
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->family, "deepseek_v3");
  }
  const Result<ModelConfig> v3 = load_config((models / "configs/deepseek-v3").string());
  EXPECT_EQ(v3->geometry, kDeepSeekV3);
  EXPECT_EQ(v3->context_length, 163840);
  const Result<ModelConfig> kimi = load_config((models / "configs/kimi-k2").string());
  EXPECT_EQ(kimi->eos_ids, std::vector<int>{163585});
  EXPECT_EQ(kimi->moe.experts, 384);
  const Result<ModelConfig> draft = load_config((models / "latte-tiny-draft").string());
  EXPECT_EQ(draft->layer_kinds, (std::vector<FfnKind>{FfnKind::kDense, FfnKind::kDense}));
}

TEST(LoadConfig, OtherReleasedFamiliesAreRefusedByName) {
  const char* data = std::getenv("LATTE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  int refused = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(data) / "models" / "configs")) {
    if (!entry.is_directory()) continue;
    const Result<ModelConfig> config = load_config(entry.path().string());
    if (config.ok()) continue;
    ++refused;
    EXPECT_EQ(config.error().message.find((entry.path() / "config.json").string()), 0u) << config.error().message;
    EXPECT_NE(config.error().message.find("which latte does not run"), std::string::npos) << config.error().message;
  }
  EXPECT_GE(refused, 5);
}

}  // namespace
}  // namespace latte
