#include "decode/draft_model_drafter.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/decode_rig.h"

namespace latte {
namespace {

using test::DecodeRig;
using test::DrafterKind;
using test::plain_text;
using test::toy_prompt;

TEST(DraftModelDrafter, FeedsOneInputPerDraftAndTheMissingOneNextRound) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(10);
  rig.run(tokens, {.max_tokens = 13, .depth = 3});
  // The first draft reads prompt and first token; later rounds, all accepted, first feed the last draft and the bonus.
  std::vector<int> rows;
  for (const auto& step : rig.draft.steps) rows.push_back(step.rows);
  EXPECT_EQ(rows, (std::vector<int>{11, 1, 1, 2, 1, 1, 2, 1, 1}));
}

TEST(DraftModelDrafter, AfterARejectionFeedsOnlyTheCurrentToken) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel, .contrary_drafter = true});
  std::vector<TokenId> tokens = toy_prompt(10);
  rig.run(tokens, {.max_tokens = 5, .depth = 2});
  std::vector<int> rows;
  for (const auto& step : rig.draft.steps) rows.push_back(step.rows);
  EXPECT_EQ(rows, (std::vector<int>{11, 1, 1, 1, 1}));  // the last round has room for one draft
}

TEST(DraftModelDrafter, ReadsALongPromptInPromptSteps) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel});
  std::vector<TokenId> tokens = toy_prompt(1200);
  rig.run(tokens, {.max_tokens = 5, .depth = 2});
  ASSERT_GE(rig.draft.steps.size(), 3U);
  EXPECT_EQ(rig.draft.steps[0].rows, 512);
  EXPECT_EQ(rig.draft.steps[1].rows, 512);
  EXPECT_EQ(rig.draft.steps[2].rows, 177);
  EXPECT_EQ(rig.draft.steps[0].role, Role::kPrompt);
  EXPECT_EQ(rig.draft.steps[0].wanted, LogitsWanted::kNone);
  EXPECT_EQ(rig.draft.steps[2].wanted, LogitsWanted::kLast);
}

TEST(DraftModelDrafter, GoesOnInAWindowWhereItsContextEnds) {
  for (const int draft_context : {1, 2, 3, 8, 64}) {
    for (const int depth : {1, 3, 8}) {
      for (const int prompt : {1, 7, 63, 64, 65, 300}) {
        DecodeRig rig({.kind = DrafterKind::kDraftModel, .drafter_noise = 0, .draft_context = draft_context});
        std::vector<TokenId> tokens = toy_prompt(prompt);
        const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), tokens, 150);
        const Generation done = rig.run(tokens, {.max_tokens = 150, .depth = depth});
        ASSERT_EQ(tokens, expected);
        EXPECT_GT(done.stats.drafted, 0);
        // The toy model looks back three tokens; a window longer than that drafts as well as the whole text.
        if (draft_context == 64) {
          EXPECT_EQ(done.stats.accepted, done.stats.drafted);
        }
      }
    }
  }
}

TEST(DraftModelDrafter, RefillsWhereTheModelCannotRewind) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel});
  rig.draft.rewind_floor = 1 << 20;
  std::vector<TokenId> tokens = toy_prompt(20);
  rig.run(tokens, {.max_tokens = 30, .depth = 3});
  EXPECT_EQ(tokens, plain_text({}, Sampler({}, 50), toy_prompt(20), 30));
}

TEST(DraftModelDrafter, RewindsBelowItsWindow) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel, .drafter_noise = 0, .draft_context = 32});
  std::vector<TokenId> tokens = toy_prompt(100);
  rig.run(tokens, {.max_tokens = 20, .depth = 2});
  std::vector<TokenId> shorter = toy_prompt(10);
  const Generation done = rig.run(shorter, {.max_tokens = 20, .depth = 2});
  EXPECT_EQ(shorter, plain_text({}, Sampler({}, 50), toy_prompt(10), 20));
  EXPECT_EQ(done.stats.accepted, done.stats.drafted);
}

TEST(DraftModelDrafter, AgreesAtEveryDepthWhenTheModelsAreEqual) {
  for (const SamplingOptions& sampling : std::vector<SamplingOptions>{{}, {.temperature = 1, .seed = 3}}) {
    for (int depth = 1; depth <= 8; ++depth) {
      DecodeRig rig({.kind = DrafterKind::kDraftModel, .sampling = sampling, .drafter_noise = 0});
      std::vector<TokenId> tokens = toy_prompt(40);
      const Generation done = rig.run(tokens, {.max_tokens = 1 + 10 * (depth + 1), .depth = depth});
      EXPECT_EQ(done.stats.rounds, 10);
      EXPECT_EQ(done.stats.accepted, 10 * depth) << "accepted at every temperature";
    }
  }
}

std::vector<TokenId> drafts_for(Drafter& drafter, const std::vector<TokenId>& tokens, const Sampler& sampler) {
  const LogitRules rules;
  TokenChooser chooser(sampler, rules, tokens);
  const auto drafts = drafter.draft({.tokens = tokens, .max_drafts = 4, .chooser = &chooser});
  EXPECT_EQ(chooser.position(), static_cast<std::int64_t>(tokens.size())) << "drafts were on trial";
  EXPECT_TRUE(drafts.ok());
  return drafts.ok() ? std::vector<TokenId>(drafts->begin(), drafts->end()) : std::vector<TokenId>{};
}

TEST(DraftModelDrafter, DraftsDependOnTheTokensAlone) {
  const Sampler greedy({}, 50);
  test::FakeTimeline model({});
  DraftModelDrafter drafter(model);
  std::vector<TokenId> tokens = toy_prompt(20);
  const std::vector<TokenId> expected = plain_text({}, greedy, tokens, 4);
  EXPECT_EQ(drafts_for(drafter, tokens, greedy), std::vector<TokenId>(expected.begin() + 20, expected.end()));
  EXPECT_EQ(drafts_for(drafter, tokens, greedy), std::vector<TokenId>(expected.begin() + 20, expected.end()))
      << "asked again";
  tokens[18] = 7;  // nobody said so
  const std::vector<TokenId> changed = plain_text({}, greedy, tokens, 4);
  EXPECT_EQ(drafts_for(drafter, tokens, greedy), std::vector<TokenId>(changed.begin() + 20, changed.end()));
}

TEST(DraftModelDrafter, DraftsNothingWhereItsModelHasNoRowForAnId) {
  test::FakeTimeline model({.vocab = 30});
  DraftModelDrafter drafter(model);
  const Sampler greedy({}, 50);
  std::vector<TokenId> tokens = toy_prompt(20, 30);
  EXPECT_EQ(drafts_for(drafter, tokens, greedy).size(), 4U);
  const std::size_t steps = model.steps.size();
  tokens.push_back(30);
  EXPECT_TRUE(drafts_for(drafter, tokens, greedy).empty());
  EXPECT_EQ(model.steps.size(), steps) << "nothing is fed";
  tokens.back() = 29;
  EXPECT_EQ(drafts_for(drafter, tokens, greedy).size(), 4U);
}

TEST(DraftModelDrafter, AOneTokenPromptDraftsAtOnce) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel, .drafter_noise = 0});
  const std::vector<TokenId> prompt{3};
  EXPECT_EQ(drafts_for(*rig.watch.inner, prompt, Sampler({}, 50)).size(), 4U);
}

}  // namespace
}  // namespace latte
