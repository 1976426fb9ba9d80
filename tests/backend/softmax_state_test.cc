#include "backend/softmax_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace latte {
namespace {

struct State {
  double o = 0;
  Log2Sum sum;
};

State merge(State a, State b) {
  if (b.sum.empty()) return a;
  if (a.sum.empty()) return b;
  const MergeWeights weights = merge_weights(a.sum, b.sum);
  return {weights.a_weight * a.o + weights.b_weight * b.o, weights.sum};
}

TEST(SoftmaxState, AFloatIsNotALog2Sum) {
  EXPECT_FALSE((std::is_convertible_v<float, Log2Sum>));
  EXPECT_FALSE((std::is_convertible_v<Log2Sum, float>));
}

TEST(SoftmaxState, ANewSumIsEmpty) {
  EXPECT_TRUE(Log2Sum{}.empty());
  EXPECT_FALSE(Log2Sum{0}.empty());
  EXPECT_FALSE(Log2Sum{-1e30f}.empty());
}

TEST(SoftmaxState, TwoEqualStatesAddExactlyOneToTheSum) {
  for (const float value : {-100.0f, -1.5f, 0.0f, 3.25f, 60.0f}) {
    const MergeWeights merged = merge_weights({value}, {value});
    EXPECT_EQ(merged.sum.value, value + 1);
    EXPECT_EQ(merged.a_weight, 0.5f);
    EXPECT_EQ(merged.b_weight, 0.5f);
  }
}

TEST(SoftmaxState, WeightsArePowersOfTwoOfTheSums) {
  const MergeWeights merged = merge_weights({5}, {3});  // masses 32 and 8
  EXPECT_FLOAT_EQ(merged.a_weight, 0.8f);
  EXPECT_FLOAT_EQ(merged.b_weight, 0.2f);
  EXPECT_FLOAT_EQ(merged.sum.value, std::log2(40.0f));
}

TEST(SoftmaxState, MergingIsCommutative) {
  const MergeWeights ab = merge_weights({2.7f}, {-4.1f});
  const MergeWeights ba = merge_weights({-4.1f}, {2.7f});
  EXPECT_EQ(ab.a_weight, ba.b_weight);
  EXPECT_EQ(ab.b_weight, ba.a_weight);
  EXPECT_EQ(ab.sum.value, ba.sum.value);
}

TEST(SoftmaxState, MergingIsAssociativeWithinRounding) {
  const State a{1.5, {2.25f}}, b{-0.75, {4.5f}}, c{3, {-1}};
  const State left = merge(merge(a, b), c);
  const State right = merge(a, merge(b, c));
  EXPECT_NEAR(left.o, right.o, 1e-6);
  EXPECT_NEAR(left.sum.value, right.sum.value, 1e-6);
}

TEST(SoftmaxState, TheMergeOfPartsIsTheSoftmaxOfTheWhole) {
  const double scores[] = {0.5, -2, 3.75, 1, 2.5}, values[] = {1, 2, -3, 4, 0.25};
  double mass = 0, sum = 0;
  State merged;
  for (int i = 0; i < 5; ++i) {
    mass += std::exp2(scores[i]);
    sum += std::exp2(scores[i]) * values[i];
    merged = merge(merged, {values[i], {static_cast<float>(scores[i])}});
  }
  EXPECT_NEAR(merged.o, sum / mass, 1e-6);
  EXPECT_NEAR(merged.sum.value, std::log2(mass), 1e-6);
}

TEST(SoftmaxState, AVeryFarStateWeighsNothingAndGivesNoNaN) {
  const MergeWeights merged = merge_weights({3e38f}, {-3e38f});
  EXPECT_EQ(merged.a_weight, 1);
  EXPECT_EQ(merged.b_weight, 0);
  EXPECT_EQ(merged.sum.value, 3e38f);
}

}  // namespace
}  // namespace latte
