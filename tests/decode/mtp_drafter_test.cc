#include "decode/mtp_drafter.h"

#include <gtest/gtest.h>

#include <vector>

#include "decode/decode_rig.h"

namespace latte {
namespace {

using test::DecodeRig;
using test::DrafterKind;
using test::FakeMtpTimeline;
using test::plain_text;
using test::toy_prompt;

const MtpDrafter& drafter_of(const DecodeRig& rig) { return static_cast<const MtpDrafter&>(*rig.watch.inner); }

TEST(MtpDrafter, AgreesAtEveryDepthWhenTheLayerIsPerfect) {
  for (const SamplingOptions& sampling : std::vector<SamplingOptions>{{}, {.temperature = 1, .seed = 3}}) {
    for (int depth = 1; depth <= 8; ++depth) {
      DecodeRig rig({.kind = DrafterKind::kMtp, .sampling = sampling, .drafter_noise = 0});
      std::vector<TokenId> tokens = toy_prompt(40);
      const Generation done = rig.run(tokens, {.max_tokens = 1 + 10 * (depth + 1), .depth = depth});
      EXPECT_EQ(done.stats.rounds, 10);
      EXPECT_EQ(done.stats.accepted, 10 * depth) << "accepted at every temperature";
    }
  }
}

TEST(MtpDrafter, AcceptedDraftsAreWrittenAgainFromTheTargetsRows) {
  // check_rows, run before every draft and at the exit, compares each row with the pair (hidden row i, token i + 1).
  for (int depth = 1; depth <= 8; ++depth) {
    DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 1.5});
    std::vector<TokenId> tokens = toy_prompt(40);
    const Generation done = rig.run(tokens, {.max_tokens = 120, .depth = depth});
    EXPECT_GT(done.stats.accepted, 0);
    EXPECT_LT(done.stats.accepted, done.stats.drafted);
    EXPECT_EQ(drafter_of(rig).window_start(), 0);
  }
}

TEST(MtpDrafter, RowsEqualARunThatWroteThemOneAtATime) {
  DecodeRig drafting({.kind = DrafterKind::kMtp, .drafter_noise = 1.5});
  std::vector<TokenId> tokens = toy_prompt(40);
  drafting.run(tokens, {.max_tokens = 100, .depth = 5});

  test::FakeTimeline target({});
  FakeMtpTimeline one_by_one({});
  for (int row = 0; row < drafting.mtp.length(); ++row) {
    const auto step = target.step({&tokens[row], 1}, Role::kGenerated, LogitsWanted::kNone);
    ASSERT_TRUE(step.ok());
    ASSERT_TRUE(one_by_one.step({&tokens[row + 1], 1}, step->hidden, Role::kGenerated, LogitsWanted::kNone).ok());
  }
  for (int row = 0; row < drafting.mtp.length(); ++row) {
    const FakeMtpTimeline::Row& got = drafting.mtp.rows()[row];
    const FakeMtpTimeline::Row& expected = one_by_one.rows()[row];
    EXPECT_EQ(got.next, expected.next);
    EXPECT_EQ(got.hidden.position, expected.hidden.position);
    EXPECT_EQ(got.hidden.last, expected.hidden.last);
    EXPECT_EQ(got.hidden.chained, expected.hidden.chained);
  }
}

TEST(MtpDrafter, WritesThePromptAsItIsRead) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(1300);
  rig.run(tokens, {.max_tokens = 2, .depth = 1});
  std::vector<int> prompt_rows;
  for (const auto& step : rig.mtp.steps) {
    ASSERT_LE(step.rows, 512);
    if (step.role == Role::kPrompt) prompt_rows.push_back(step.rows);
  }
  EXPECT_EQ(prompt_rows, (std::vector<int>{511, 512, 276}));
  EXPECT_EQ(rig.mtp.length(), 1299);
}

TEST(MtpDrafter, NoMemoryForTheQueueIsAnErrorAndItGoesOn) {
  test::FakeTimeline target({});
  FakeMtpTimeline mtp({});
  MtpDrafter drafter(mtp);
  const std::vector<TokenId> tokens = toy_prompt(4);
  const auto step = target.step({tokens.data(), 3}, Role::kPrompt, LogitsWanted::kNone);
  ASSERT_TRUE(step.ok());
  mtp.keep_fails = true;
  const Status seen = drafter.observe({.tokens = tokens, .first_row = 0, .hidden = step->hidden});
  ASSERT_FALSE(seen.ok());
  EXPECT_EQ(seen.error().kind, ErrorKind::kOutOfMemory);
  mtp.keep_fails = false;
  EXPECT_TRUE(drafter.observe({.tokens = tokens, .first_row = 0, .hidden = step->hidden}).ok());
  EXPECT_EQ(mtp.kept().rows, 3);
}

TEST(MtpDrafter, AOneTokenPromptDrafts) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens{3};
  const Generation done = rig.run(tokens, {.max_tokens = 21, .depth = 3});
  EXPECT_EQ(done.stats.accepted, 15);
  EXPECT_EQ(done.stats.rounds, 5);
}

TEST(MtpDrafter, AfterAShortPauseNoRowIsMissing) {
  for (const int pause : {1, 15, 16, 17, 100, 440}) {
    DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
    std::vector<TokenId> tokens = toy_prompt(30);
    rig.run(tokens, {.max_tokens = 10, .depth = 2});
    const std::size_t steps = rig.mtp.steps.size();
    rig.run(tokens, {.max_tokens = pause, .depth = 0, .first_generated = 30});
    EXPECT_EQ(rig.mtp.steps.size(), steps) << "parked: nothing is computed";
    const Generation done = rig.run(tokens, {.max_tokens = 30, .depth = 2, .first_generated = 30});
    EXPECT_EQ(done.stats.accepted, done.stats.drafted);
    EXPECT_GT(done.stats.drafted, 10);
    EXPECT_EQ(drafter_of(rig).window_start(), 0);
  }
}

TEST(MtpDrafter, AfterALongPauseItWorksOnAWindow) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(30);
  rig.run(tokens, {.max_tokens = 10, .depth = 2});
  rig.run(tokens, {.max_tokens = 1500, .depth = 0, .first_generated = 30});
  EXPECT_LE(rig.mtp.kept().rows, FakeMtpTimeline::kMaxKept);
  const Generation done = rig.run(tokens, {.max_tokens = 30, .depth = 2, .first_generated = 30});
  EXPECT_EQ(done.stats.accepted, done.stats.drafted);
  EXPECT_GT(done.stats.drafted, 10);
  EXPECT_GE(drafter_of(rig).window_start(), 1539 - FakeMtpTimeline::kMaxKept);
  EXPECT_LE(drafter_of(rig).window_start(), 1539 - 440);
}

TEST(MtpDrafter, AParkedPromptKeepsItsLastRows) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(1300);
  rig.run(tokens, {.max_tokens = 5, .depth = 0});
  EXPECT_TRUE(rig.mtp.steps.empty());
  EXPECT_GT(rig.mtp.kept().rows, 200);
  const Generation done = rig.run(tokens, {.max_tokens = 30, .depth = 2, .first_generated = 1300});
  EXPECT_EQ(done.stats.accepted, done.stats.drafted);
}

TEST(MtpDrafter, AWarmCacheWithoutHiddenRowsStartsAWindow) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(60);
  ASSERT_TRUE(rig.target.step({tokens.data(), 40}, Role::kPrompt, LogitsWanted::kNone).ok());
  const Generation done = rig.run(tokens, {.max_tokens = 30, .depth = 2});
  EXPECT_EQ(done.stats.cached_tokens, 40);
  EXPECT_EQ(drafter_of(rig).window_start(), 40);
  EXPECT_EQ(done.stats.accepted, done.stats.drafted);
}

TEST(MtpDrafter, RewindsToAnyLengthAndDraftsAgainAtOnce) {
  for (int length = 0; length <= 560; length += length < 20 || length > 540 ? 1 : 40) {
    DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
    std::vector<TokenId> tokens = toy_prompt(550);
    rig.run(tokens, {.max_tokens = 12, .depth = 3});
    ASSERT_TRUE(rig.target.rewind_to(length).ok());
    ASSERT_TRUE(rig.watch.inner->rewind_to(length).ok());
    tokens.resize(length);
    for (const TokenId token : {9, 8, 7}) tokens.push_back(token);
    const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), tokens, 20);
    const Generation done = rig.run(tokens, {.max_tokens = 20, .depth = 3});
    ASSERT_EQ(tokens, expected) << "rewound to " << length;
    EXPECT_EQ(done.stats.accepted, done.stats.drafted) << "rewound to " << length;
    EXPECT_GT(done.stats.drafted, 10);
    if (length > 520) {
      EXPECT_EQ(drafter_of(rig).window_start(), 0) << "recent rows are still in the queue";
    }
  }
}

TEST(MtpDrafter, AShorterContextThanTheTargetsIsAWindowToo) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  FakeMtpTimeline small(rig.setup.model, 600);
  rig.watch.inner = std::make_unique<MtpDrafter>(small);
  std::vector<TokenId> tokens = toy_prompt(1000);
  const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), tokens, 400);
  rig.setup.kind = DrafterKind::kNone;  // the rig's own layer is not in use: only the target's rows are checked
  const Generation done = rig.run(tokens, {.max_tokens = 400, .depth = 3});
  EXPECT_EQ(tokens, expected);
  EXPECT_GT(done.stats.accepted, 200);
}

TEST(MtpDrafter, ARewindGivesUpTheLastWrittenRowAlone) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(40);
  rig.run(tokens, {.max_tokens = 12, .depth = 3});
  for (int length = rig.mtp.length(); length > 1; --length) {
    ASSERT_TRUE(rig.watch.inner->rewind_to(length).ok());
    EXPECT_EQ(rig.mtp.length(), length - 1) << "row " << length - 1 << " waits for its token, those before it stay";
  }
}

TEST(MtpDrafter, RowsSeenAgainReplaceTheOldOnes) {
  DecodeRig rig({.kind = DrafterKind::kMtp, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(40);
  rig.run(tokens, {.max_tokens = 12, .depth = 3});
  // The target goes back on its own and steps other tokens: the drafter learns it from the rows' place alone.
  ASSERT_TRUE(rig.target.rewind_to(45).ok());
  tokens.resize(45);
  for (const TokenId token : {9, 8, 7}) tokens.push_back(token);
  const auto step = rig.target.step({tokens.data() + 45, 2}, Role::kGenerated, LogitsWanted::kNone);
  ASSERT_TRUE(step.ok());
  ASSERT_TRUE(rig.watch.inner->observe({.tokens = tokens, .first_row = 45, .hidden = step->hidden}).ok());
  EXPECT_EQ(drafter_of(rig).window_start(), 0) << "rows before it stay";
  const Generation done = rig.run(tokens, {.max_tokens = 20, .depth = 3, .first_generated = 45});
  EXPECT_EQ(done.stats.accepted, done.stats.drafted);
}

}  // namespace
}  // namespace latte
