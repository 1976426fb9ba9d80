#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "decode/chi_square.h"
#include "decode/decode_rig.h"

namespace latte {
namespace {

using test::chi_square_p;
using test::DecodeRig;
using test::DrafterKind;
using test::ToyModel;
using test::upper_gamma;

constexpr int kDraws = 20000;
constexpr double kSmallestP = 1e-3;
constexpr int kVocab = 60;
const std::vector<TokenId> kPrompt{11, 4, 27};

using Distribution = std::vector<double>;

/// The filters and the softmax as their definitions read.
Distribution distribution(const std::vector<float>& logits, const SamplingOptions& options) {
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  const auto weight = [&](int token) {
    return std::exp((static_cast<double>(logits[token]) - static_cast<double>(logits[order[0]])) / options.temperature);
  };
  if (options.top_k > 0) order.resize(std::min<std::size_t>(order.size(), options.top_k));
  double total = 0;
  for (const int token : order) total += weight(token);
  std::size_t kept = 0;
  for (double mass = 0; kept < order.size() && mass < options.top_p * total;) mass += weight(order[kept++]);
  order.resize(kept);
  std::erase_if(order, [&](int token) { return weight(token) < options.min_p; });
  total = 0;
  for (const int token : order) total += weight(token);
  Distribution p(logits.size());
  for (const int token : order) p[token] = weight(token) / total;
  return p;
}

double total_variation(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (std::size_t v = 0; v < p.size(); ++v) sum += std::abs(p[v] - q[v]);
  return sum / 2;
}

/// sum over v of 1 / sum over w of max(p_w / p_v, q_w / q_v): how often two choices with the same noise agree.
double expected_acceptance(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (std::size_t v = 0; v < p.size(); ++v) {
    if (p[v] <= 0 || q[v] <= 0) continue;
    double inverse = 0;
    for (std::size_t w = 0; w < p.size(); ++w) inverse += std::max(p[w] / p[v], q[w] / q[v]);
    sum += 1 / inverse;
  }
  return sum;
}

struct Drafting {
  const char* name;
  DrafterKind kind;
  float noise;
};
const std::vector<Drafting> kDraftings = {{"near draft model", DrafterKind::kDraftModel, 0.25F},
                                          {"far draft model", DrafterKind::kDraftModel, 3.5F},
                                          {"near mtp", DrafterKind::kMtp, 0.25F},
                                          {"far mtp", DrafterKind::kMtp, 3.5F},
                                          {"none", DrafterKind::kNone, 0}};
constexpr std::size_t kNearDraftModel = 0;
constexpr std::size_t kFarDraftModel = 1;
constexpr std::size_t kFarMtp = 3;
constexpr std::size_t kNoDrafter = 4;

const ToyModel kModel{.vocab = kVocab, .salt = 20, .spread = 2};
const SamplingOptions kPlainSampling{.temperature = 1};
const SamplingOptions kFiltered{.temperature = 0.8, .top_k = 30, .top_p = 0.9, .min_p = 0.02};

/// kDraws texts of three tokens after the one context, one seed each. The second and third come from verify rows: as an
/// accepted draft, as a correction, or as the bonus after a draft.
struct Draws {
  std::vector<std::vector<TokenId>> texts;
  DecodeStats stats;  // of all runs, where summed: rounds, drafted, accepted and the positions
};

Draws draw(const Drafting& drafting, SamplingOptions sampling, std::uint64_t first_seed,
           AcceptRule accept = accept_equal_choices) {
  Draws draws;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    sampling.seed = first_seed + i;
    DecodeRig rig({.model = kModel, .kind = drafting.kind, .sampling = sampling, .drafter_noise = drafting.noise});
    std::vector<TokenId> tokens = kPrompt;
    const Generation done = rig.run(tokens, {.max_tokens = 3, .depth = 3, .accept = accept});
    draws.texts.emplace_back(tokens.begin() + 3, tokens.end());
    draws.stats.rounds += done.stats.rounds;
    draws.stats.drafted += done.stats.drafted;
    draws.stats.accepted += done.stats.accepted;
    draws.stats.tested_per_position[0] += done.stats.tested_per_position[0];
    draws.stats.accepted_per_position[0] += done.stats.accepted_per_position[0];
  }
  return draws;
}

/// The exact distribution of the three tokens, by enumeration.
struct Exact {
  Distribution first;                      // [vocab]
  std::vector<Distribution> second_after;  // [first][second]
  Distribution second, third;              // marginals
  Distribution first_and_second;           // [first x vocab + second]
  Distribution second_and_third;

  explicit Exact(const SamplingOptions& sampling)
      : second(kVocab), third(kVocab), first_and_second(kVocab * kVocab), second_and_third(kVocab * kVocab) {
    first = distribution(kModel.logits(kPrompt), sampling);
    for (int a = 0; a < kVocab; ++a) {
      second_after.push_back(distribution(kModel.logits(kPrompt[1], kPrompt[2], a), sampling));
      for (int b = 0; b < kVocab; ++b) {
        const double pair = first[a] * second_after[a][b];
        first_and_second[a * kVocab + b] = pair;
        second[b] += pair;
        if (pair <= 0) continue;
        const Distribution after = distribution(kModel.logits(kPrompt[2], a, b), sampling);
        for (int c = 0; c < kVocab; ++c) {
          third[c] += pair * after[c];
          second_and_third[b * kVocab + c] += pair * after[c];
        }
      }
    }
  }
};

double p_of_token(const Draws& draws, int place, const Distribution& exact) {
  std::vector<std::int64_t> counts(kVocab);
  for (const auto& text : draws.texts) ++counts[text[place]];
  return chi_square_p(counts, exact);
}

double p_of_pair(const Draws& draws, int place, const Distribution& exact) {
  std::vector<std::int64_t> counts(kVocab * kVocab);
  for (const auto& text : draws.texts) ++counts[text[place] * kVocab + text[place + 1]];
  return chi_square_p(counts, exact);
}

/// Draws with plain sampling, made once for all tests that look at them.
const Draws& plain_draws(std::size_t drafting) {
  static std::vector<Draws> made(kDraftings.size());
  if (made[drafting].texts.empty()) made[drafting] = draw(kDraftings[drafting], kPlainSampling, 1'000'000);
  return made[drafting];
}

std::span<const float> logits_of(const VerifiedBlock& block, std::size_t row) {
  return {block.logits.row(row), static_cast<std::size_t>(block.logits.cols)};
}

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Biased: the greedy rule used above temperature 0. Drafts are compared with the likeliest token, which is what is
/// emitted.
void accept_argmax(const VerifiedBlock& block, std::vector<TokenId>& emitted) {
  for (std::size_t row = 0; row < block.drafts.size(); ++row) {
    emitted.push_back(likeliest(logits_of(block, row)));
    if (block.drafts[row] != emitted.back()) return;
  }
  const std::size_t last = block.drafts.size();
  emitted.push_back(block.chooser->sampler().choose(logits_of(block, last),
                                                    block.chooser->position() + static_cast<std::int64_t>(last)));
}

/// Biased more softly: a draft that is the likeliest token is kept, any other gives way to a proper draw.
void accept_likeliest_draft(const VerifiedBlock& block, std::vector<TokenId>& emitted) {
  for (std::size_t row = 0; row <= block.drafts.size(); ++row) {
    const std::span<const float> logits = logits_of(block, row);
    if (row < block.drafts.size() && block.drafts[row] == likeliest(logits)) {
      emitted.push_back(block.drafts[row]);
      continue;
    }
    emitted.push_back(
        block.chooser->sampler().choose(logits, block.chooser->position() + static_cast<std::int64_t>(row)));
    return;
  }
}

TEST(ChiSquare, UpperGammaMeetsTabledValues) {
  // 5% and 0.1% points of the chi-square distribution with 1, 10 and 100 degrees of freedom.
  EXPECT_NEAR(upper_gamma(0.5, 3.841458821 / 2), 0.05, 1e-9);
  EXPECT_NEAR(upper_gamma(5, 18.30703805 / 2), 0.05, 1e-9);
  EXPECT_NEAR(upper_gamma(50, 124.3421134 / 2), 0.05, 1e-9);
  EXPECT_NEAR(upper_gamma(50, 149.4492527 / 2), 0.001, 1e-9);
  EXPECT_NEAR(upper_gamma(50, 70.06489 / 2), 0.99, 1e-6);
}

TEST(ChiSquare, SeesABiasOfThreePercent) {
  const std::vector<double> fair{0.25, 0.25, 0.25, 0.25};
  EXPECT_GT(chi_square_p(std::vector<std::int64_t>{5010, 4985, 5040, 4965}, fair), kSmallestP);
  EXPECT_LT(chi_square_p(std::vector<std::int64_t>{5150, 4950, 4950, 4950}, fair), 0.2);
  EXPECT_LT(chi_square_p(std::vector<std::int64_t>{5300, 4900, 4900, 4900}, fair), kSmallestP);
}

TEST(SamplingDistribution, TheDraftersAreNearAndFar) {
  for (const float noise : {0.25F, 3.5F}) {
    ToyModel drafter = kModel;
    drafter.drafter_noise = noise;
    double sum = 0;
    for (int a = 0; a < kVocab; ++a) {
      sum += total_variation(distribution(kModel.logits(4, 27, a), kPlainSampling),
                             distribution(drafter.logits(4, 27, a), kPlainSampling));
    }
    const double mean = sum / kVocab;
    std::printf("drafter noise %.2f: mean total variation %.3f\n", static_cast<double>(noise), mean);
    if (noise < 1) {
      EXPECT_LT(mean, 0.1);
    } else {
      EXPECT_GT(mean, 0.4);
    }
  }
}

void expect_distribution(const Draws& draws, const Exact& exact, const char* name) {
  EXPECT_GT(p_of_token(draws, 0, exact.first), kSmallestP) << name;
  EXPECT_GT(p_of_token(draws, 1, exact.second), kSmallestP) << name;
  EXPECT_GT(p_of_token(draws, 2, exact.third), kSmallestP) << name;
  EXPECT_GT(p_of_pair(draws, 0, exact.first_and_second), kSmallestP) << name;
  EXPECT_GT(p_of_pair(draws, 1, exact.second_and_third), kSmallestP) << name;
}

TEST(SamplingDistribution, EveryTokenAndPairHasTheTargetsDistribution) {
  const Exact exact(kPlainSampling);
  for (std::size_t i = 0; i < kDraftings.size(); ++i) expect_distribution(plain_draws(i), exact, kDraftings[i].name);
}

TEST(SamplingDistribution, FiltersAreAppliedToEveryRowOfABlock) {
  expect_distribution(draw(kDraftings[kFarMtp], kFiltered, 4'000'000), Exact(kFiltered), "filtered");
}

TEST(SamplingDistribution, EveryDrafterGivesTheSameTexts) {
  for (std::size_t i = 0; i < kDraftings.size(); ++i) EXPECT_EQ(plain_draws(i).texts, plain_draws(kNoDrafter).texts);
}

TEST(SamplingDistribution, NeighbouringSeedsAreIndependent) {
  const Exact exact(kPlainSampling);
  const Draws& draws = plain_draws(kFarDraftModel);
  for (const int place : {0, 1, 2}) {
    const Distribution& one = place == 0 ? exact.first : place == 1 ? exact.second : exact.third;
    Distribution both(kVocab * kVocab);
    for (int a = 0; a < kVocab; ++a) {
      for (int b = 0; b < kVocab; ++b) both[a * kVocab + b] = one[a] * one[b];
    }
    std::vector<std::int64_t> counts(kVocab * kVocab);
    for (std::size_t i = 0; i + 1 < draws.texts.size(); i += 2) {
      ++counts[draws.texts[i][place] * kVocab + draws.texts[i + 1][place]];
    }
    EXPECT_GT(chi_square_p(counts, both), kSmallestP) << "token " << place;
  }
}

double p_of_rule(const Drafting& drafting, AcceptRule rule) {
  const Exact exact(kPlainSampling);
  const Draws draws = draw(drafting, kPlainSampling, 1'000'000, rule);
  const double p = std::min(p_of_token(draws, 1, exact.second), p_of_pair(draws, 0, exact.first_and_second));
  std::printf("%s: the planted rule has p %.3g\n", drafting.name, p);
  return p;
}

TEST(SamplingDistribution, AcceptingByArgmaxIsCaught) {
  EXPECT_LT(p_of_rule(kDraftings[kNearDraftModel], accept_argmax), kSmallestP);
  EXPECT_LT(p_of_rule(kDraftings[kFarDraftModel], accept_argmax), kSmallestP);
  EXPECT_LT(p_of_rule(kDraftings[kFarDraftModel], accept_likeliest_draft), kSmallestP);
}

TEST(SamplingDistribution, AcceptanceIsWhatTheNoiseCouplingPromises) {
  const Exact exact(kPlainSampling);
  for (std::size_t i = 0; i < kNoDrafter; ++i) {
    const Drafting& drafting = kDraftings[i];
    ToyModel drafter = kModel;
    drafter.drafter_noise = drafting.noise;
    double expected = 0;
    double variation = 0;
    for (int a = 0; a < kVocab; ++a) {
      const Distribution q = distribution(drafter.logits(kPrompt[1], kPrompt[2], a), kPlainSampling);
      expected += exact.first[a] * expected_acceptance(exact.second_after[a], q);
      variation += exact.first[a] * total_variation(exact.second_after[a], q);
    }
    const Draws& draws = plain_draws(i);
    const auto tested = static_cast<double>(draws.stats.tested_per_position[0]);
    const double measured = static_cast<double>(draws.stats.accepted_per_position[0]) / tested;
    std::printf("%s: accepted %.4f, expected %.4f, 1 - TV %.4f\n", drafting.name, measured, expected, 1 - variation);
    EXPECT_EQ(draws.stats.tested_per_position[0], kDraws) << "one draft of one position a text";
    EXPECT_NEAR(measured, expected, 4 * std::sqrt(expected * (1 - expected) / tested));
  }
}

}  // namespace
}  // namespace latte
