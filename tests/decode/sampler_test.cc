#include "decode/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "decode/gumbel.h"

namespace latte {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::size_t vocab, float spread, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& value : logits) value = normal(engine);
  return logits;
}

/// Tokens from most to least likely, equal values by lowest id.
std::vector<int> by_likelihood(const std::vector<float>& logits) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  return order;
}

/// The filters as their definitions read, by sorting everything.
std::vector<int> allowed_by_definition(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int> order = by_likelihood(logits);
  const auto scaled = [&](int token) { return static_cast<double>(logits[token]) / options.temperature; };
  const double peak = scaled(order.front());
  if (options.top_k > 0 && options.top_k < static_cast<int>(order.size())) order.resize(options.top_k);
  if (options.top_p < 1) {
    double total = 0;
    for (const int token : order) total += std::exp(scaled(token) - peak);
    double mass = 0;
    std::size_t kept = 0;
    while (kept < order.size() && mass < options.top_p * total) mass += std::exp(scaled(order[kept++]) - peak);
    order.resize(kept);
  }
  std::erase_if(order, [&](int token) { return std::exp(scaled(token) - peak) < options.min_p; });
  return order;
}

/// The rule as it reads: noise for every allowed token, no skipping.
int choice_by_definition(const std::vector<float>& logits, const SamplingOptions& options, std::int64_t position) {
  std::vector<int> allowed = allowed_by_definition(logits, options);
  std::sort(allowed.begin(), allowed.end());
  int best = -1;
  double best_score = 0;
  for (const int token : allowed) {
    GumbelNoise noise(options.seed, position);
    const double score = static_cast<double>(logits[token]) * (1 / options.temperature) +
                         gumbel(noise.bits(static_cast<std::uint32_t>(token)));
    if (best < 0 || score > best_score) {
      best = token;
      best_score = score;
    }
  }
  return best;
}

TEST(Gumbel, IsFiniteAtBothEndsAndBelowItsCeiling) {
  EXPECT_GT(open_uniform(0), 0.0);
  EXPECT_LT(open_uniform(0xffffffff), 1.0);
  EXPECT_NEAR(gumbel(0), -std::log(33 * std::log(2.0)), 1e-12);
  EXPECT_NEAR(gumbel(0xffffffff), 33 * std::log(2.0), 1e-9);
  EXPECT_LT(gumbel(0xffffffff), kGumbelCeiling);
}

TEST(Gumbel, BoundHoldsForEdgesOfEveryRunOfLeadingOnes) {
  for (int ones = 0; ones <= 32; ++ones) {
    const std::uint32_t lowest = ones == 0 ? 0 : 0xffffffffU << (32 - ones);
    const std::uint32_t highest = ones == 32 ? 0xffffffffU : ~(1U << (31 - ones));
    for (const std::uint32_t bits : {lowest, highest}) EXPECT_LE(gumbel(bits), gumbel_bound(bits)) << bits;
  }
  std::mt19937 engine(1);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<std::uint32_t>(engine());
    ASSERT_LE(gumbel(bits), gumbel_bound(bits)) << bits;
  }
}

TEST(Gumbel, NoiseDependsOnSeedPositionTokenAndStreamOnly) {
  GumbelNoise in_order(9, 40);
  std::vector<std::uint32_t> forward;
  for (std::uint32_t token = 0; token < 40; ++token) forward.push_back(in_order.bits(token));
  GumbelNoise backwards(9, 40);
  for (std::uint32_t token = 40; token-- > 0;) EXPECT_EQ(backwards.bits(token), forward[token]);
  EXPECT_NE(GumbelNoise(10, 40).bits(3), forward[3]);
  EXPECT_NE(GumbelNoise(9, 41).bits(3), forward[3]);
  EXPECT_NE(GumbelNoise(9, 40 + (std::int64_t{1} << 32)).bits(3), forward[3]);
  EXPECT_NE(GumbelNoise(9, 40, NoiseStream::kResidual).bits(3), forward[3]);
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowestIdOfEquals) {
  const Sampler greedy({}, 300);
  std::vector<float> logits(300, -1.0F);
  EXPECT_EQ(greedy.choose(logits, 0), 0);
  logits[299] = 2;
  EXPECT_EQ(greedy.choose(logits, 0), 299);
  logits[130] = logits[131] = 2;
  EXPECT_EQ(greedy.choose(logits, 0), 130);
  logits[5] = kInfinity;
  logits[4] = -kInfinity;
  EXPECT_EQ(greedy.choose(logits, 0), 5);
}

TEST(Sampler, VocabularyOfOneAlwaysGivesItsToken) {
  const std::vector<float> logits{-3.0F};
  EXPECT_EQ(Sampler({}, 1).choose(logits, 7), 0);
  EXPECT_EQ(Sampler({.temperature = 1, .top_k = 4, .top_p = 0.1, .min_p = 0.9}, 1).choose(logits, 7), 0);
}

TEST(Sampler, ChoiceEqualsTheRuleWithoutSkipping) {
  const std::vector<SamplingOptions> all_options = {
      {.temperature = 1},
      {.temperature = 0.3},
      {.temperature = 4},
      {.temperature = 1, .top_k = 1},
      {.temperature = 1, .top_k = 7},
      {.temperature = 1.5, .top_k = 100000},
      {.temperature = 1, .top_p = 0.9},
      {.temperature = 1, .top_p = 1e-9},
      {.temperature = 1, .min_p = 0.05},
      {.temperature = 1, .min_p = 1},
      {.temperature = 2, .top_k = 50, .top_p = 0.8, .min_p = 0.02},
  };
  for (const std::size_t vocab : {3U, 64U, 65U, 1000U}) {
    for (const float spread : {0.0F, 0.5F, 3.0F, 12.0F}) {
      for (SamplingOptions options : all_options) {
        for (int trial = 0; trial < 12; ++trial) {
          const std::vector<float> logits = random_logits(vocab, spread, static_cast<unsigned>(trial));
          options.seed = 77 + static_cast<std::uint64_t>(trial % 3);
          const Sampler sampler(options, static_cast<int>(vocab));
          ASSERT_EQ(sampler.choose(logits, 100 + trial), choice_by_definition(logits, options, 100 + trial))
              << "vocab " << vocab << " spread " << spread << " T " << options.temperature << " k " << options.top_k
              << " p " << options.top_p << " min-p " << options.min_p;
        }
      }
    }
  }
}

TEST(Sampler, EqualValuesAtTheTopKEdgeAreKeptByLowestId) {
  std::vector<float> logits(200, 1.0F);
  logits[150] = 3.0F;
  const SamplingOptions options{.temperature = 5, .top_k = 4};
  std::vector<bool> seen(200);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SamplingOptions seeded = options;
    seeded.seed = seed;
    seen[Sampler(seeded, 200).choose(logits, 3)] = true;
  }
  for (int token = 0; token < 200; ++token) EXPECT_EQ(seen[token], token < 3 || token == 150) << token;
}

TEST(Sampler, AFilterThatAllowsTheChoiceDoesNotChangeIt) {
  const std::vector<float> logits = random_logits(500, 2, 5);
  const std::vector<int> order = by_likelihood(logits);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const TokenId free = Sampler({.temperature = 1, .seed = seed}, 500).choose(logits, 11);
    const int rank = static_cast<int>(std::find(order.begin(), order.end(), free) - order.begin());
    EXPECT_EQ(Sampler({.temperature = 1, .top_k = rank + 1, .seed = seed}, 500).choose(logits, 11), free);
    EXPECT_NE(Sampler({.temperature = 1, .top_k = std::max(rank, 1), .seed = seed}, 500).choose(logits, 11) == free,
              rank > 0);
  }
}

TEST(Sampler, ForbiddenTokensAreNeverChosen) {
  std::vector<float> logits(100, -kInfinity);
  logits[17] = -50;
  logits[60] = -49;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const TokenId token = Sampler({.temperature = 1, .top_k = 10, .seed = seed}, 100).choose(logits, 0);
    EXPECT_TRUE(token == 17 || token == 60) << token;
  }
}

TEST(Sampler, HugeLogitsLeaveNoRoomForNoise) {
  std::vector<float> logits(100, -3e38F);
  EXPECT_EQ(Sampler({.temperature = 1}, 100).choose(logits, 0), 0);
  logits[42] = 3e38F;
  EXPECT_EQ(Sampler({.temperature = 1e-6}, 100).choose(logits, 0), 42);
}

TEST(Sampler, RefusesOptionsThatMakeNoDistribution) {
  EXPECT_TRUE(check_sampling({}).ok());
  EXPECT_TRUE(check_sampling({.temperature = 1, .top_k = 5, .top_p = 0.5, .min_p = 0.5}).ok());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const SamplingOptions& broken : std::vector<SamplingOptions>{{.temperature = -1},
                                                                    {.temperature = nan},
                                                                    {.temperature = 1e-300},
                                                                    {.top_k = -1},
                                                                    {.top_p = 0},
                                                                    {.top_p = 1.5},
                                                                    {.top_p = nan},
                                                                    {.min_p = -0.1},
                                                                    {.min_p = nan}}) {
    EXPECT_FALSE(check_sampling(broken).ok());
  }
}

// One token has more than half the mass; the others, far below it, hold a tenth of it together.
TEST(Sampler, TopPTakesTheLikelyTokensBeforeTheFarOnes) {
  std::vector<float> logits(1000, -9.0F);
  logits[321] = 0;
  const Sampler sampler({.temperature = 1, .top_p = 0.5, .seed = 5}, 1000);
  for (int position = 0; position < 300; ++position) ASSERT_EQ(sampler.choose(logits, position), 321);
}

}  // namespace
}  // namespace latte
