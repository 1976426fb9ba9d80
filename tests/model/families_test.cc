// How each family reads its configuration: what differs between them, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "model/config.h"
#include "model/families/family.h"
#include "support/refusal.h"

namespace latte {
namespace {

/// A small configuration with every key that a family must be given.
Json sizes(const char* model_type) {
  const bool latent =
      std::set<std::string>{"deepseek_v2", "glm4_moe_lite", "youtu", "youtu_llm", "minicpm3"}.contains(model_type);
  return {{"model_type", model_type},
          {"vocab_size", 300},
          {"hidden_size", 48},
          {"intermediate_size", 96},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 4},
          {"num_key_value_heads", latent ? 4 : 2},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000},
          {"kv_lora_rank", 32},
          {"qk_rope_head_dim", 16},
          {"qk_nope_head_dim", 24},
          {"v_head_dim", 20},
          {"q_lora_rank", nullptr},
          {"scale_emb", 1},
          {"scale_depth", 1},
          {"dim_model_base", 48},
          {"n_routed_experts", 8},
          {"n_shared_experts", nullptr},
          {"moe_intermediate_size", 16},
          {"num_experts_per_tok", 2},
          {"num_experts", 8},
          {"decoder_sparse_step", 1},
          {"first_k_dense_replace", 1},
          {"routed_scaling_factor", 1},
          {"norm_topk_prob", false},
          {"topk_method", std::string_view(model_type) == "deepseek_v2" ? "greedy" : "noaux_tc"},
          {"n_group", 1},
          {"topk_group", 1}};
}

ModelConfig read(const Json& json) {
  const Result<ModelConfig> config = parse_config(json, "config.json");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  return config.ok() ? *config : ModelConfig{};
}

ModelConfig read_with(const char* model_type, const Json& change) {
  Json json = sizes(model_type);
  json.update(change);
  return read(json);
}

std::string family_refusal(const char* model_type, const Json& change) {
  Json json = sizes(model_type);
  json.update(change);
  return test::refusal(parse_config(json, "config.json"));
}

TEST(Families, NoWordMeansTwoOfThem) {
  std::set<std::string_view> seen;
  for (const Family& family : families()) {
    for (const std::string_view word : family.words) EXPECT_TRUE(seen.insert(word).second) << word;
  }
  for (const RefusedFamily& family : refused_families()) {
    for (const std::string_view word : family.words) EXPECT_TRUE(seen.insert(word).second) << word;
  }
}

TEST(Families, RefusedOnesNameARunningOne) {
  for (const RefusedFamily& refused : refused_families()) {
    bool runs = false;
    for (const Family& family : families()) runs = runs || family.name == refused.nearest;
    EXPECT_TRUE(runs) << refused.name;
  }
}

TEST(Families, ArchitectureDecidesWhereTheTypeIsUnknown) {
  for (const Family& family : families()) {
    const Json json = [&] {
      Json changed = sizes(std::string(family.name).c_str());
      changed["num_key_value_heads"] = 4;
      changed["model_type"] = "something_new";
      changed["architectures"] = {std::string(family.words.back())};
      return changed;
    }();
    EXPECT_EQ(read(json).family, family.name);
  }
}

TEST(Families, RefusedByTypeEvenWithAKnownTextModelInside) {
  const Json json = {{"model_type", "kimi_k3"}, {"text_config", sizes("deepseek_v3")}};
  const Result<ModelConfig> config = parse_config(json, "config.json");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().message,
            "config.json: model_type \"kimi_k3\" (architecture \"\") is family kimi_k3, which latte does not run: most "
            "of its layers have linear attention; the nearest that it runs is \"deepseek_v3\"");
}

struct Needed {
  const char* family;
  std::vector<const char*> keys;
};

// What the documentation of the family gives no value for: neither missing nor null means one.
TEST(Families, KeysWithoutADocumentedDefaultMustBeThere) {
  const std::vector<const char*> everywhere = {"vocab_size",        "hidden_size",         "intermediate_size",
                                               "num_hidden_layers", "num_attention_heads", "max_position_embeddings"};
  const Needed all[] = {
      {"deepseek_v2", {"topk_method", "num_experts_per_tok", "moe_intermediate_size"}},
      {"glm4_moe_lite",
       {"rms_norm_eps", "rope_theta", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim",
        "num_experts_per_tok", "routed_scaling_factor", "norm_topk_prob", "moe_intermediate_size"}},
      {"youtu", {"rms_norm_eps", "rope_theta", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"}},
      {"minicpm3",
       {"rms_norm_eps", "rope_theta", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "scale_emb",
        "scale_depth", "dim_model_base"}},
      {"llama", {"rms_norm_eps", "rope_theta"}},
      {"qwen2", {"rms_norm_eps", "rope_theta"}},
      {"qwen3", {"rms_norm_eps", "rope_theta"}},
      {"qwen3_moe",
       {"rms_norm_eps", "rope_theta", "num_experts_per_tok", "norm_topk_prob", "moe_intermediate_size",
        "decoder_sparse_step"}},
      {"dots1",
       {"rms_norm_eps", "rope_theta", "num_experts_per_tok", "routed_scaling_factor", "norm_topk_prob",
        "moe_intermediate_size", "first_k_dense_replace"}},
  };
  for (const Needed& needed : all) {
    std::vector<const char*> keys = everywhere;
    keys.insert(keys.end(), needed.keys.begin(), needed.keys.end());
    for (const char* key : keys) {
      EXPECT_EQ(family_refusal(needed.family, {{key, nullptr}})
                    .find("config.json: key \"" + std::string(key) + "\": arrived null"),
                0u)
          << needed.family << " " << key;
      Json json = sizes(needed.family);
      json.erase(key);
      const Result<ModelConfig> config = parse_config(json, "config.json");
      ASSERT_FALSE(config.ok()) << needed.family << " " << key;
      EXPECT_EQ(
          config.error().message.find("config.json: key \"" + std::string(key) + "\": arrived nothing, expected "), 0u)
          << needed.family << ": " << config.error().message;
    }
  }
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json scaling = {{"rope_type", "llama3"},
                    {"factor", 8},
                    {"low_freq_factor", 1},
                    {"high_freq_factor", 4},
                    {"original_max_position_embeddings", 32}};
    EXPECT_EQ(family_refusal("llama", {{"rope_scaling", scaling}}), "(accepted)");
    scaling.erase(key);
    EXPECT_EQ(family_refusal("llama", {{"rope_scaling", scaling}})
                  .find("config.json: key \"rope_scaling." + std::string(key)),
              0u)
        << key;
  }
}

TEST(DeepseekV2, RouterFollowsTheMethod) {
  const ModelConfig lite = read_with("deepseek_v2", {{"topk_method", "greedy"}, {"n_group", 4}, {"topk_group", 2}});
  EXPECT_EQ(lite.moe.n_group, 1);
  EXPECT_EQ(lite.moe.scoring, RouterScoring::kSoftmax);
  EXPECT_FALSE(weight_spec(lite).router_bias);
  EXPECT_EQ(lite.nextn_layers, 0);
  const ModelConfig full = read_with(
      "deepseek_v2", {{"topk_method", "group_limited_greedy"}, {"n_group", 4}, {"topk_group", 2}, {"q_lora_rank", 40}});
  EXPECT_EQ(full.moe.n_group, 4);
  EXPECT_EQ(full.moe.group_score, GroupScore::kMax);
  EXPECT_EQ(full.q_lora_rank, 40);
  EXPECT_EQ(read_with("deepseek_v2", {{"n_group", nullptr}, {"topk_group", nullptr}}).moe.topk_group, 1);
  EXPECT_EQ(read_with("deepseek_v2", {{"norm_topk_prob", true}}).moe.norm_topk_prob, false);
  EXPECT_EQ(family_refusal("deepseek_v2", {{"topk_method", "noaux_tc"}}),
            "config.json: key \"topk_method\": arrived \"noaux_tc\", expected \"greedy\" or \"group_limited_greedy\"");
}

TEST(DeepseekV2, WithoutExpertsEveryLayerIsDense) {
  const ModelConfig dense = read_with("deepseek_v2", {{"n_routed_experts", nullptr}});
  EXPECT_EQ(dense.layer_kinds, std::vector<FfnKind>(4, FfnKind::kDense));
  EXPECT_EQ(family_refusal("deepseek_v2", {{"n_routed_experts", -1}}).find("config.json: key \"n_routed_experts\""),
            0u);
}

TEST(Glm4MoeLite, LayerTypesGoBeforeTheCount) {
  EXPECT_EQ(read(sizes("glm4_moe_lite")).layer_kinds[0], FfnKind::kDense);
  EXPECT_EQ(read(sizes("glm4_moe_lite")).layer_kinds[1], FfnKind::kMoe);
  const ModelConfig typed = read_with(
      "glm4_moe_lite", {{"mlp_layer_types", {"dense", "dense", "sparse", "sparse"}}, {"first_k_dense_replace", 1}});
  EXPECT_EQ(typed.layer_kinds[1], FfnKind::kDense);
  EXPECT_EQ(typed.latent_norm_eps, 1e-6);
  EXPECT_EQ(typed.rms_norm_eps, 1e-5);
  EXPECT_EQ(family_refusal("glm4_moe_lite", {{"partial_rotary_factor", 0.5}}),
            "config.json: key \"partial_rotary_factor\": arrived 0.5, expected 1");
}

TEST(Youtu, IsDenseTiedAndMayHaveBiases) {
  const ModelConfig config = read_with("youtu_llm", {{"attention_bias", true}, {"q_lora_rank", 40}});
  EXPECT_EQ(config.family, "youtu");
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.attention_bias.inputs && config.attention_bias.output);
  EXPECT_EQ(config.moe.experts, 0);
  EXPECT_EQ(family_refusal("youtu", {{"mlp_bias", true}}),
            "config.json: key \"mlp_bias\": arrived true, expected false");
}

TEST(MiniCpm3, StreamIsKeptDividedByTheScaleOfItsBranches) {
  const ModelConfig config =
      read_with("minicpm3", {{"scale_emb", 12}, {"scale_depth", 1.4}, {"dim_model_base", 16}, {"v_head_dim", nullptr}});
  EXPECT_DOUBLE_EQ(config.embedding_scale, 12 / 0.7);  // 1.4 / sqrt(4 layers)
  EXPECT_DOUBLE_EQ(config.rms_norm_eps, 1e-5 / 0.49);
  EXPECT_DOUBLE_EQ(config.final_norm_scale, 1.0 / 3);
  EXPECT_EQ(config.geometry.v, 12);  // hidden_size / heads
  EXPECT_FALSE(config.rope.interleave);
}

TEST(GqaFamilies, WidthsHaveTheirDefaults) {
  const ModelConfig plain = read_with("llama", {{"num_key_value_heads", nullptr}});
  EXPECT_EQ(plain.gqa, (GqaGeometry{.heads = 4, .kv_heads = 4, .head_dim = 12}));
  EXPECT_EQ(read_with("qwen3", {{"head_dim", 20}}).gqa, (GqaGeometry{.heads = 4, .kv_heads = 2, .head_dim = 20}));
  EXPECT_EQ(plain.cache_width(), 2 * 4 * 12);
  EXPECT_EQ(plain.rope_width(), 12);
  EXPECT_FALSE(plain.rope.interleave);
  EXPECT_EQ(family_refusal("llama", {{"num_key_value_heads", 3}}),
            "config.json: key \"num_key_value_heads\": arrived 3, expected a divisor of num_attention_heads 4");
  EXPECT_EQ(family_refusal("llama", {{"head_dim", 15}}),
            "config.json: key \"head_dim\": arrived 15, expected an even number");
  EXPECT_EQ(
      family_refusal("llama", {{"hidden_size", 50}}),
      "config.json: key \"head_dim\": arrived nothing, expected a width: hidden_size 50 is no multiple of 4 heads");
}

TEST(GqaFamilies, NormsAndBiasesAreTheFamilys) {
  EXPECT_FALSE(read(sizes("llama")).qk_norm);
  EXPECT_TRUE(read(sizes("qwen3")).qk_norm);
  EXPECT_TRUE(read(sizes("dots1")).qk_norm);
  const ModelConfig qwen2 = read(sizes("qwen2"));
  EXPECT_TRUE(qwen2.attention_bias.inputs && !qwen2.attention_bias.output);
  EXPECT_TRUE(read_with("llama", {{"attention_bias", true}}).attention_bias.output);
  EXPECT_EQ(family_refusal("qwen2", {{"use_sliding_window", true}}),
            "config.json: key \"use_sliding_window\": arrived true, expected false");
  EXPECT_EQ(family_refusal("dots1", {{"layer_types", {"sliding_attention"}}}),
            "config.json: key \"layer_types\": arrived [...], expected \"full_attention\" for every layer");
}

TEST(Qwen3Moe, SparseStepAndDenseLayersAreFollowed) {
  const ModelConfig config = read_with("qwen3_moe", {{"decoder_sparse_step", 2}, {"mlp_only_layers", {3}}});
  EXPECT_EQ(config.layer_kinds,
            (std::vector<FfnKind>{FfnKind::kDense, FfnKind::kMoe, FfnKind::kDense, FfnKind::kDense}));
  EXPECT_EQ(config.moe.scoring, RouterScoring::kSoftmax);
  EXPECT_FALSE(config.moe.norm_topk_prob);
  EXPECT_EQ(config.moe.shared, 0);
  EXPECT_FALSE(weight_spec(config).router_bias);
}

TEST(Dots1, RouterIsThatOfDeepseekV3) {
  const ModelConfig config =
      read_with("dots1", {{"scoring_func", "noaux_tc"}, {"n_shared_experts", 2}, {"first_k_dense_replace", 0}});
  EXPECT_EQ(config.moe.scoring, RouterScoring::kSigmoid);
  EXPECT_TRUE(weight_spec(config).router_bias);
  EXPECT_EQ(config.moe.shared, 2);
  EXPECT_EQ(config.layer_kinds[0], FfnKind::kMoe);
}

TEST(Rope, LongRopeTakesItsExtensionFromTheContext) {
  const Json lists = {{"type", "longrope"},
                      {"short_factor", {1, 1, 1, 1, 1, 1}},
                      {"long_factor", {1, 2, 3, 4, 5, 6}},
                      {"original_max_position_embeddings", 16}};
  const ModelConfig config = read_with("llama", {{"rope_scaling", lists}});
  ASSERT_TRUE(config.rope.longrope.has_value());
  EXPECT_DOUBLE_EQ(config.rope.longrope->magnitude, std::sqrt(1.5));  // ln 4 / ln 16
  EXPECT_EQ(config.rope.longrope->long_factor.back(), 6);
  Json few = lists;
  few["long_factor"] = {1, 2};
  EXPECT_EQ(family_refusal("llama", {{"rope_scaling", few}}),
            "config.json: key \"rope_scaling.long_factor\": arrived 2 entries, expected a list of 6 numbers above 0");
  few["long_factor"] = {1, 2, 3, 4, 5, 0};
  EXPECT_NE(family_refusal("llama", {{"rope_scaling", few}}), "(accepted)");
}

}  // namespace
}  // namespace latte
