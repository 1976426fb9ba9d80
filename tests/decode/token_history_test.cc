#include "decode/token_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace latte {
namespace {

using Counts = TokenHistory::Counts;

Counts counted(const std::vector<TokenId>& tokens, std::size_t first) {
  Counts counts;
  for (std::size_t i = first; i < tokens.size(); ++i) ++counts[tokens[i]];
  return counts;
}

std::size_t window_start(const std::vector<TokenId>& tokens, int last_n) {
  const std::size_t window = last_n < 0 ? tokens.size() : std::min(tokens.size(), static_cast<std::size_t>(last_n));
  return tokens.size() - window;
}

TEST(TokenHistory, PushesAndPopsInAnyOrderCountAsIfCountedAnew) {
  std::mt19937 random(3);
  for (const int last_n : {0, 1, 2, 5, 16, 100, -1}) {
    for (const std::size_t prompt_size : {0U, 1U, 4U, 5U, 6U, 30U}) {
      std::vector<TokenId> tokens(prompt_size);
      for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 6);
      TokenHistory history(tokens, last_n);
      for (int move = 0; move < 300; ++move) {
        if (random() % 5 < 3 || tokens.size() == prompt_size) {
          tokens.push_back(static_cast<TokenId>(random() % 6));
          history.push(tokens.back());
        } else {
          tokens.pop_back();
          history.pop();
        }
        ASSERT_EQ(history.recent(), counted(tokens, window_start(tokens, last_n))) << "last " << last_n;
        ASSERT_EQ(history.generated(), counted(tokens, prompt_size)) << "last " << last_n;
      }
    }
  }
}

TEST(TokenHistory, ThePromptCountsInTheWindowAndNotAsGenerated) {
  const std::vector<TokenId> prompt{7, 8, 8, 9};
  const TokenHistory history(prompt, 3);
  EXPECT_EQ(history.recent(), (Counts{{8, 2}, {9, 1}}));
  EXPECT_TRUE(history.generated().empty());
}

}  // namespace
}  // namespace latte
