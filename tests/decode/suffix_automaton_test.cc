#include "decode/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace latte {
namespace {

/// Length of the longest suffix of `text` that also ends earlier, by trying every earlier end.
int longest_repeat(const std::vector<TokenId>& text) {
  int best = 0;
  const int size = static_cast<int>(text.size());
  for (int end = 0; end + 1 < size; ++end) {
    int length = 0;
    while (length <= end && text[end - length] == text[size - 1 - length]) ++length;
    best = std::max(best, length);
  }
  return best;
}

TEST(SuffixAutomaton, FindsTheLongestRepeatedSuffixOfRandomTexts) {
  std::mt19937 engine(3);
  for (const int alphabet : {1, 2, 3, 10, 1000}) {
    SuffixAutomaton automaton;
    std::vector<TokenId> text;
    for (int i = 0; i < 300; ++i) {
      text.push_back(static_cast<TokenId>(engine() % alphabet));
      automaton.append(text.back());
      const SuffixAutomaton::Repeat repeat = automaton.repeat();
      ASSERT_EQ(repeat.length, longest_repeat(text)) << "alphabet " << alphabet << " after " << i;
      if (repeat.length == 0) continue;
      ASSERT_LT(repeat.next, static_cast<int>(text.size())) << "the earlier place lies before the end";
      ASSERT_TRUE(std::equal(text.end() - repeat.length, text.end(), text.begin() + repeat.next - repeat.length));
    }
  }
}

TEST(SuffixAutomaton, ClearForgetsTheText) {
  SuffixAutomaton automaton;
  for (const TokenId token : {1, 2, 1, 2}) automaton.append(token);
  EXPECT_EQ(automaton.repeat().length, 2);
  automaton.clear();
  automaton.append(1);
  EXPECT_EQ(automaton.repeat().length, 0);
  EXPECT_EQ(automaton.text().size(), 1U);
}

TEST(SuffixAutomaton, HoldsALongTextOfFewSymbols) {
  SuffixAutomaton automaton;
  std::mt19937 engine(4);
  for (int i = 0; i < 200000; ++i) automaton.append(static_cast<TokenId>(engine() % 4));
  EXPECT_GT(automaton.repeat().length, 3);
  EXPECT_LT(automaton.repeat().length, 60);
}

}  // namespace
}  // namespace latte
