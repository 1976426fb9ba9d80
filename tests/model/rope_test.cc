#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace latte {
namespace {

/// Cases of tools/make_yarn_golden.py: the same definition in numpy.
Json golden() { return *read_json_file(LATTE_SOURCE_DIR "/tests/data/yarn.json"); }

ModelConfig config_of(const Json& c) {
  const Json json = {{"model_type", "deepseek_v3"},       {"qk_rope_head_dim", c["p"]},
                     {"qk_nope_head_dim", c["n"]},        {"rope_theta", c["rope_theta"]},
                     {"rope_scaling", c["rope_scaling"]}, {"max_position_embeddings", 512}};
  const Result<ModelConfig> config = parse_config(json, "yarn.json");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  return config.ok() ? *config : ModelConfig{};
}

TEST(RopeTable, SpeedsAndMagnitudeEqualTheGolden) {
  for (const Json& c : golden()) {
    const ModelConfig config = config_of(c);
    const RopeTable table = rope_table(config.rope, config.geometry.p);
    const std::vector<double> expected = c["inv_freq"];
    ASSERT_EQ(table.inv_freq.size(), expected.size()) << c["name"];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(table.inv_freq[i], expected[i], 1e-13 * expected[i]) << c["name"] << " pair " << i;
    }
    EXPECT_NEAR(table.magnitude, c["magnitude"].get<double>(), 1e-14) << c["name"];
  }
}

TEST(SoftmaxScale, EqualsTheGolden) {
  for (const Json& c : golden()) {
    const double expected = c["softmax_scale"];
    EXPECT_NEAR(softmax_scale(config_of(c)), expected, 1e-14 * expected) << c["name"];
  }
}

TEST(SoftmaxScale, OfDeepSeekV3IsThePublishedFactor) {
  ModelConfig config;
  config.geometry = kDeepSeekV3;
  config.rope.yarn =
      YarnConfig{.factor = 40, .original_max = 4096, .mscale = 1, .mscale_all_dim = 1, .attention_factor = {}};
  EXPECT_NEAR(softmax_scale(config) * std::sqrt(192.0), 1.8739, 1e-4);
  EXPECT_EQ(rope_table(config.rope, 64).magnitude, 1);
}

TEST(RopeTable, EqualBoundsGiveAStep) {
  RopeConfig rope;
  rope.yarn = YarnConfig{.factor = 4, .original_max = 6, .attention_factor = {}};  // both bounds fall to pair 0
  const RopeTable table = rope_table(rope, 16);
  EXPECT_EQ(table.inv_freq[0], 1);
  EXPECT_EQ(table.inv_freq[1], std::pow(10000.0, -2.0 / 16) / 4);
}

TEST(RopeTable, Llama3KeepsFastSlowsSlowAndBlendsBetween) {
  RopeConfig rope{.theta = 500000, .interleave = false, .yarn = {}, .llama3 = Llama3Config{}, .longrope = {}};
  const RopeTable table = rope_table(rope, 128);
  for (std::size_t i = 0; i < table.inv_freq.size(); ++i) {
    const double plain = std::pow(500000.0, -2.0 * static_cast<double>(i) / 128);
    const double wave = 2 * 3.14159265358979323846 / plain;
    if (wave < 8192.0 / 4) {
      EXPECT_DOUBLE_EQ(table.inv_freq[i], plain);
    } else if (wave > 8192.0) {
      EXPECT_DOUBLE_EQ(table.inv_freq[i], plain / 8);
    } else {
      EXPECT_LT(table.inv_freq[i], plain);
      EXPECT_GT(table.inv_freq[i], plain / 8);
    }
  }
}

TEST(RopeTable, ContextPicksTheListOfLongRope) {
  RopeConfig rope;
  rope.longrope = LongRopeConfig{.short_factor = {1, 2}, .long_factor = {3, 4}, .original_max = 32, .magnitude = 1.25};
  for (const int context : {1, 32}) EXPECT_EQ(rope_table(rope, 4, context).inv_freq[0], 1) << context;
  for (const int context : {33, 1000}) EXPECT_EQ(rope_table(rope, 4, context).inv_freq[0], 1.0 / 3) << context;
  EXPECT_EQ(rope_table(rope, 4, 1).magnitude, 1.25);
  EXPECT_EQ(rope_table(rope, 4, 33).magnitude, 1.25);
  EXPECT_EQ(describe_rope(rope, 32), "longrope, short list: context 32 is within 32");
  EXPECT_EQ(describe_rope(rope, 33), "longrope, long list: context 33 is past 32");
}

TEST(RopeTable, WidthZeroHasNoPairs) { EXPECT_TRUE(rope_table({}, 0).inv_freq.empty()); }

}  // namespace
}  // namespace latte
