// Every trait of a family is seen by its golden: with the trait wrong, the logits are not those of the golden.
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

#include "device/open_backend.h"
#include "model/config_file.h"
#include "support/golden.h"
#include "support/teacher_forced.h"
#include "support/temp_folder.h"
#include "support/test_model.h"
#include "support/tolerance.h"

namespace latte {
namespace {

struct Fault {
  std::string family;
  std::string name;
  void (*plant)(ModelConfig& config);
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.family << " with " << fault.name; }

class FamilyFault : public ::testing::TestWithParam<Fault> {};

TEST_P(FamilyFault, MovesTheLogits) {
  const auto folder = test::family_folder(GetParam().family);
  if (!folder.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set and the folder is not committed";
  auto backend = open_backend({.device = "reference", .threads = 2, .compute = DType::kF32});
  ASSERT_TRUE(backend.ok());
  const auto ids = test::read_golden_ids(*folder + "/golden.safetensors", "ids");
  const auto golden = test::read_golden_matrix(*folder + "/golden.safetensors", "logits");
  ASSERT_TRUE(ids.ok() && golden.ok());
  for (const bool faulty : {false, true}) {
    Result<ModelConfig> config = load_config(*folder);
    ASSERT_TRUE(config.ok()) << config.error().message;
    if (faulty) GetParam().plant(*config);
    const Result<Model> model = load_model(*folder, *config);
    ASSERT_TRUE(model.ok()) << model.error().message;
    const auto logits = test::teacher_forced(*model, **backend, *ids, {.steps = {56}, .cache_dtype = DType::kF64});
    ASSERT_TRUE(logits.ok()) << logits.error().message;
    const double difference = test::max_relative_difference(logits->main, golden->values);
    if (faulty) {
      EXPECT_GT(difference, test::kModelReference) << "the golden does not see it";
    } else {
      EXPECT_LT(difference, test::kModelReference);
    }
  }
}

const Fault kFaults[] = {
    {"deepseek_v2_lite", "Eps", [](ModelConfig& c) { c.rms_norm_eps *= 10; }},
    {"deepseek_v2_lite", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = false; }},
    {"deepseek_v2_lite", "Mscale", [](ModelConfig& c) { c.rope.yarn->mscale = 1; }},
    {"deepseek_v2_lite", "MscaleAllDim", [](ModelConfig& c) { c.rope.yarn->mscale_all_dim = 0; }},
    {"deepseek_v2_lite", "SigmoidRouter", [](ModelConfig& c) { c.moe.scoring = RouterScoring::kSigmoid; }},
    {"deepseek_v2_lite", "NormalisedRouter", [](ModelConfig& c) { c.moe.norm_topk_prob = true; }},
    {"deepseek_v2_full", "GroupScore", [](ModelConfig& c) { c.moe.group_score = GroupScore::kTop2Sum; }},
    {"deepseek_v2_full", "NoGroups", [](ModelConfig& c) { c.moe.n_group = c.moe.topk_group = 1; }},
    {"deepseek_v2_full", "RouterScaling", [](ModelConfig& c) { c.moe.scaling = 1; }},
    {"deepseek_v3", "GroupScore", [](ModelConfig& c) { c.moe.group_score = GroupScore::kMax; }},
    {"glm4_moe_lite", "LatentEps", [](ModelConfig& c) { c.latent_norm_eps = c.rms_norm_eps; }},
    {"glm4_moe_lite", "Eps", [](ModelConfig& c) { c.rms_norm_eps = 1e-6; }},
    {"glm4_moe_lite", "Unnormalised", [](ModelConfig& c) { c.moe.norm_topk_prob = false; }},
    {"glm4_moe_lite", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = false; }},
    {"youtu", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = false; }},
    {"youtu_rq", "Theta", [](ModelConfig& c) { c.rope.theta = 10000; }},
    {"youtu_vl", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = false; }},
    {"minicpm3", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = true; }},
    {"minicpm3", "ResidualScale", [](ModelConfig& c) { c.embedding_scale *= 1.4 / 1.7320508; }},
    {"minicpm3", "EpsOfTheUnscaledStream", [](ModelConfig& c) { c.rms_norm_eps = 1e-5; }},
    {"minicpm3", "HeadDivisor", [](ModelConfig& c) { c.final_norm_scale = 1; }},
    {"minicpm3", "LatentEps", [](ModelConfig& c) { c.latent_norm_eps = 1e-5; }},
    {"minicpm3_untied", "HeadDivisor", [](ModelConfig& c) { c.final_norm_scale = 1; }},
    {"minicpm3_untied", "EmbeddingScale", [](ModelConfig& c) { c.embedding_scale = 1; }},
    {"minicpm3_longrope", "List", [](ModelConfig& c) { c.rope.longrope->long_factor = c.rope.longrope->short_factor; }},
    {"minicpm3_longrope", "Magnitude", [](ModelConfig& c) { c.rope.longrope->magnitude = 1; }},
    {"llama", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = true; }},
    {"llama", "NoRopeScaling", [](ModelConfig& c) { c.rope.llama3.reset(); }},
    {"llama", "BandBlend", [](ModelConfig& c) { c.rope.llama3->high_freq_factor = 1.001; }},
    {"llama", "Eps", [](ModelConfig& c) { c.rms_norm_eps = 1e-6; }},
    {"qwen2", "RopeStyle", [](ModelConfig& c) { c.rope.interleave = true; }},
    {"qwen3", "HeadEpsAndNorms", [](ModelConfig& c) { c.rms_norm_eps = 1e-4; }},
    {"qwen3_moe", "SigmoidRouter", [](ModelConfig& c) { c.moe.scoring = RouterScoring::kSigmoid; }},
    {"qwen3_moe", "Unnormalised", [](ModelConfig& c) { c.moe.norm_topk_prob = false; }},
    {"dots1", "SoftmaxRouter", [](ModelConfig& c) { c.moe.scoring = RouterScoring::kSoftmax; }},
    {"dots1", "RouterScaling", [](ModelConfig& c) { c.moe.scaling = 1; }},
};

INSTANTIATE_TEST_SUITE_P(Traits, FamilyFault, ::testing::ValuesIn(kFaults),
                         [](const auto& fault) { return fault.param.family + "_" + fault.param.name; });

// A bias or a norm that the configuration leaves out is a tensor nobody asked for.
struct LeftOut {
  std::string family;
  std::string tensor;
  void (*plant)(ModelConfig& config);
};

TEST(FamilyFault, TensorsLeftOutAreRefusedByName) {
  const LeftOut all[] = {
      {"qwen2", "_proj.bias", [](ModelConfig& c) { c.attention_bias = {}; }},
      {"qwen3", "_norm.weight", [](ModelConfig& c) { c.qk_norm = false; }},
      {"dots1", "e_score_correction_bias", [](ModelConfig& c) { c.moe.bias = false; }},
  };
  if (!test::test_data_folder().has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
  for (const LeftOut& left_out : all) {
    const std::string folder = *test::family_folder(left_out.family);
    Result<ModelConfig> config = load_config(folder);
    ASSERT_TRUE(config.ok());
    left_out.plant(*config);
    const Result<Model> model = load_model(folder, *config);
    ASSERT_FALSE(model.ok()) << left_out.family;
    EXPECT_NE(model.error().message.find("a name this architecture does not have"), std::string::npos)
        << model.error().message;
    EXPECT_NE(model.error().message.find(left_out.tensor), std::string::npos) << model.error().message;
  }
}

// A configuration that contradicts its weights is blamed by its key, not by a tensor.
TEST(FamilyFault, KeyThatContradictsTheWeightsIsBlamed) {
  const std::string source = LATTE_SOURCE_DIR "/tests/data/families/deepseek_v3/";
  const Json config = *read_json_file(source + "config.json");
  const struct {
    Json change;
    const char* message;
  } all[] = {
      {{{"first_k_dense_replace", 0}},
       "/config.json: key first_k_dense_replace 0: by it the layer \"model.layers.0\" is one with experts, expected a "
       "dense one as the weights have \"model.layers.0.mlp.gate_proj.weight\""},
      {{{"first_k_dense_replace", 2}},
       "/config.json: key first_k_dense_replace 2: by it the layer \"model.layers.1\" is dense, expected one with "
       "experts as the weights have \"model.layers.1.mlp.gate.weight\""},
      {{{"moe_layer_freq", 2}}, "/config.json: key first_k_dense_replace 1, moe_layer_freq 2: by it the layer"},
      {{{"mlp_layer_types", {"dense", "dense", "sparse", "sparse"}}},
       "/config.json: key mlp_layer_types: by it the layer"},
      {{{"n_routed_experts", nullptr}}, "/config.json: key n_routed_experts null: by it the layer \"model.layers.1\""},
      {{{"n_routed_experts", 32}},
       "/config.json: key \"n_routed_experts\": arrived 32, expected 16 as tensor \"model.layers.1.mlp.gate.weight\" "
       "[16, 48] has"},
      {{{"n_routed_experts", 12}}, "/config.json: key \"n_routed_experts\": arrived 12, expected 16 as tensor"},
  };
  const test::TempFolder folder;
  std::filesystem::copy_file(source + "model.safetensors", folder.file("model.safetensors"));
  for (const auto& one : all) {
    Json changed = config;
    changed.update(one.change);
    folder.write("config.json", changed.dump());
    const Result<Model> model = load_model(folder.path());
    ASSERT_FALSE(model.ok()) << one.change.dump();
    EXPECT_EQ(model.error().message.find(folder.path() + one.message), 0u) << model.error().message;
  }
}

}  // namespace
}  // namespace latte
