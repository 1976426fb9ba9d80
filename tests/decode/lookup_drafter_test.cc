#include "decode/lookup_drafter.h"

#include <gtest/gtest.h>

#include <vector>

namespace latte {
namespace {

std::vector<TokenId> drafts_after(LookupDrafter& drafter, const std::vector<TokenId>& tokens, int max_drafts = 8) {
  const Sampler greedy({}, 100);
  const LogitRules rules;
  TokenChooser chooser(greedy, rules, tokens);
  const auto drafts = drafter.draft({.tokens = tokens, .max_drafts = max_drafts, .chooser = &chooser});
  EXPECT_TRUE(drafts.ok());
  return {drafts->begin(), drafts->end()};
}

std::vector<TokenId> fresh_drafts(const std::vector<TokenId>& tokens, int max_drafts = 8) {
  LookupDrafter drafter;
  return drafts_after(drafter, tokens, max_drafts);
}

TEST(LookupDrafter, ProposesWhatFollowedTheRepeat) {
  EXPECT_EQ(fresh_drafts({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}), (std::vector<TokenId>{4, 5, 6}));
  EXPECT_EQ(fresh_drafts({1, 2, 3, 4, 5, 6, 9, 1, 2, 3}, 2), (std::vector<TokenId>{4, 5}));
}

TEST(LookupDrafter, ProposesNothingWhereNothingRepeats) {
  EXPECT_TRUE(fresh_drafts({}).empty());
  EXPECT_TRUE(fresh_drafts({7}).empty());
  EXPECT_TRUE(fresh_drafts({1, 2, 3, 4}).empty());
  EXPECT_TRUE(fresh_drafts({1, 2, 3, 1}).empty()) << "one token is below the minimum match";
}

TEST(LookupDrafter, FollowsAPeriodPastTheEndOfTheText) {
  EXPECT_EQ(fresh_drafts({5, 6, 5, 6, 5, 6, 5, 6}, 5), (std::vector<TokenId>{5, 6, 5, 6, 5}));
  EXPECT_EQ(fresh_drafts({4, 4, 4, 4}, 3), (std::vector<TokenId>{4, 4, 4}));
}

TEST(LookupDrafter, PrefersTheLatestRepeatItHasMet) {
  LookupDrafter drafter;
  EXPECT_EQ(drafts_after(drafter, {1, 2, 7, 9, 1, 2}, 1), (std::vector<TokenId>{7}));
  EXPECT_EQ(drafts_after(drafter, {1, 2, 7, 9, 1, 2, 8, 9, 1, 2}, 1), (std::vector<TokenId>{8}));
}

TEST(LookupDrafter, ARewindForgetsExactlyWhatChanged) {
  LookupDrafter drafter;
  const std::vector<TokenId> first{1, 2, 3, 9, 8, 1, 2};
  drafts_after(drafter, first);
  ASSERT_TRUE(drafter.rewind_to(5).ok());
  EXPECT_EQ(drafts_after(drafter, {1, 2, 3, 9, 8, 2, 3}), (std::vector<TokenId>{9, 8}));
  ASSERT_TRUE(drafter.rewind_to(2).ok());
  EXPECT_EQ(drafts_after(drafter, {1, 2, 1, 2}), fresh_drafts({1, 2, 1, 2}));
  ASSERT_TRUE(drafter.rewind_to(0).ok());
  EXPECT_TRUE(drafts_after(drafter, {6, 5}).empty());
}

TEST(LookupDrafter, AChangedLastTokenReplacesTheOld) {
  LookupDrafter drafter;
  drafts_after(drafter, {1, 2, 3, 1});
  ASSERT_TRUE(drafter.rewind_to(3).ok());
  EXPECT_TRUE(drafts_after(drafter, {1, 2, 3, 7, 3, 1}).empty());
  EXPECT_EQ(drafts_after(drafter, {1, 2, 3, 7, 3, 1, 2}), (std::vector<TokenId>{3, 7}));
}

TEST(LookupDrafter, IncrementalAndFreshAgreeOnLength) {
  LookupDrafter drafter;
  std::vector<TokenId> text;
  for (int i = 0; i < 400; ++i) {
    text.push_back((i * i / 3 + i / 7) % 6);
    ASSERT_EQ(drafts_after(drafter, text).size(), fresh_drafts(text).size()) << i;
  }
}

}  // namespace
}  // namespace latte
