#include "decode/token_ranking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace latte {
namespace {

TEST(TokenRanking, IsTheLogSoftmaxInOrder) {
  std::mt19937 random(11);
  for (const int vocab : {1, 2, 19, 20, 21, 300}) {
    std::vector<float> logits(static_cast<std::size_t>(vocab));
    for (float& logit : logits) logit = static_cast<float>(random() % 64) * 0.25F - 8;  // many are equal
    long double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
    std::vector<int> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    for (const int count : {0, 1, 5, 20}) {
      const TokenId token = static_cast<TokenId>(random() % static_cast<unsigned>(vocab));
      const TokenRanking ranking = rank_token(logits, token, count);
      EXPECT_NEAR(ranking.logprob, static_cast<double>(logits[token] - std::log(sum)), 1e-12);
      ASSERT_EQ(ranking.top.size(), static_cast<std::size_t>(std::min(count, vocab)));
      for (std::size_t i = 0; i < ranking.top.size(); ++i) {
        EXPECT_EQ(ranking.top[i].token, order[i]) << "equal ones by id";
        EXPECT_NEAR(ranking.top[i].logprob, static_cast<double>(logits[order[i]] - std::log(sum)), 1e-12);
      }
    }
  }
}

TEST(TokenRanking, LargeLogitsStayFiniteAndImpossibleTokensAreNotListed) {
  const float never = -std::numeric_limits<float>::infinity();
  const TokenRanking ranking = rank_token(std::vector<float>{3e38F, never, -3e38F, 3e38F}, 0, 20);
  EXPECT_NEAR(ranking.logprob, -std::log(2.0), 1e-12);
  ASSERT_EQ(ranking.top.size(), 3U);
  EXPECT_EQ(ranking.top[2].token, 2);
}

}  // namespace
}  // namespace latte
