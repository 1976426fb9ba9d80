// The oracle against formulas written out once more, the plain way, for small shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "device/reference/reference_backend.h"
#include "support/device_memory.h"
#include "support/random_rows.h"

namespace latte::test {
namespace {

class Reference : public ::testing::Test {
 protected:
  DeviceMatrix matrix(std::int64_t rows, std::int64_t cols, std::span<const double> values) {
    return {*backend_, DType::kF64, rows, cols, values};
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
};

TEST_F(Reference, MatmulSumsRowsTimesRows) {
  const DeviceMatrix x = matrix(2, 3, std::vector<double>{1, 2, 3, 4, 5, 6});
  const DeviceMatrix w(*backend_, DType::kBf16, 2, 3, std::vector<double>{1, 0, -1, 2, 2, 0.5});
  const DeviceMatrix y = matrix(2, 2, std::vector<double>{10, 20, 30, 40});
  const Projection projections[] = {{w.ref(), y.ref(), true}};
  backend_->matmul({StepClass::kDecode, x.ref(), projections});
  EXPECT_EQ(y.row(0), (std::vector<double>{8, 27.5}));
  EXPECT_EQ(y.row(1), (std::vector<double>{28, 61}));
}

TEST_F(Reference, HeadMatmulSumsOverTheChosenIndex) {
  const DeviceMatrix w(*backend_, DType::kF32, 3, 2, std::vector<double>{1, 2, 3, 4, 5, 6});  // one head [3, 2]
  const ConstStackRef stack{w.ref().data, DType::kF32, 1, 3, 2, 0, w.ref().row_stride};
  const DeviceMatrix x2 = matrix(1, 2, std::vector<double>{1, 10});
  const DeviceMatrix x3 = matrix(1, 3, std::vector<double>{1, 10, 100});
  const DeviceMatrix y3 = matrix(1, 3, std::vector<double>(3));
  const DeviceMatrix y2 = matrix(1, 2, std::vector<double>(2));
  backend_->head_matmul({StepClass::kDecode, x2.ref(), stack, HeadSum::kCols, y3.ref()});
  backend_->head_matmul({StepClass::kDecode, x3.ref(), stack, HeadSum::kRows, y2.ref()});
  EXPECT_EQ(y3.row(0), (std::vector<double>{21, 43, 65}));
  EXPECT_EQ(y2.row(0), (std::vector<double>{531, 642}));
}

TEST_F(Reference, RopeTurnsNeighboursOrHalves) {
  const double angle[] = {std::numbers::pi / 2, 0};
  const DeviceMatrix cos = matrix(1, 2, std::vector<double>{std::cos(angle[0]), std::cos(angle[1])});
  const DeviceMatrix sin = matrix(1, 2, std::vector<double>{std::sin(angle[0]), std::sin(angle[1])});
  const auto turned = [&](RopeStyle style) {
    const DeviceMatrix x = matrix(1, 4, std::vector<double>{1, 2, 3, 4});
    backend_->rope({x.ref(), 1, cos.ref(), sin.ref(), style});
    return x.row(0);
  };
  const std::vector<double> interleaved = turned(RopeStyle::kInterleaved), halves = turned(RopeStyle::kHalfSplit);
  const double expected_interleaved[] = {-2, 1, 3, 4}, expected_halves[] = {-3, 2, 1, 4};
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(interleaved[i], expected_interleaved[i], 1e-15);
    EXPECT_NEAR(halves[i], expected_halves[i], 1e-15);
  }
}

TEST_F(Reference, NormDividesByTheRootOfTheMeanSquare) {
  const DeviceMatrix x = matrix(1, 2, std::vector<double>{3, 4});
  const DeviceMatrix weight(*backend_, DType::kF32, 1, 2, std::vector<double>{1, 0.5});
  backend_->rms_norm({x.ref(), weight.ref(), 0.5, x.ref()});
  EXPECT_NEAR(x.row(0)[0], 3 / std::sqrt(13.0), 1e-15);
  EXPECT_NEAR(x.row(0)[1], 2 / std::sqrt(13.0), 1e-15);
}

TEST_F(Reference, AttentionIsASoftmaxOverWhatARowSees) {
  constexpr int kKeys = 300, kFirstQuery = 40, kQueries = 260, kKeyWidth = 5, kValueWidth = 3, kHeads = 2;
  constexpr double kScale = 0.9;  // natural: e^(scale q.k)
  DeviceRows keys(*backend_, {.dtype = DType::kF64, .width = kKeyWidth, .rows = kKeys, .page_rows = 64});
  for (int t = 0; t < kKeys; ++t) keys.write_row(t, 0, random_row(1, t, kKeyWidth, 2));
  const DeviceMatrix q = matrix(kQueries * kHeads, kKeyWidth, random_matrix(2, kQueries * kHeads, kKeyWidth, 2));
  const DeviceBuffer o = poisoned_buffer(*backend_, 2 * kQueries * kHeads * kValueWidth * sizeof(double));
  const DeviceBuffer sums = poisoned_buffer(*backend_, 2 * kQueries * kHeads * sizeof(double));
  const Partials partials{o.data(), sums.data(), DType::kF64, 2, 1, kQueries * kHeads, kValueWidth};
  const AttendSequence sequences[] = {
      {.q_WK = q.ref(), .keys = keys.ref(kKeys), .values = keys.ref(kKeys), .first_query_pos = kFirstQuery}};
  const KvChunk chunks[] = {{0, 0, 100, 0, true}, {0, 100, 128, 0, false}, {0, 128, kKeys, 1, true}};
  backend_->attend_partial({.sequences = sequences,
                            .rows_per_query = kHeads,
                            .key_width = kKeyWidth,
                            .value_width = kValueWidth,
                            .scale_log2 = kScale * std::numbers::log2e,
                            .chunks = chunks,
                            .partials = partials});
  const DeviceMatrix out(*backend_, DType::kF64, kQueries * kHeads, kValueWidth);
  const MergeRange ranges[] = {{0, 2, 0, kQueries * kHeads}};
  backend_->merge_partials({partials, ranges, out.ref(), kValueWidth});
  for (int w = 0; w < kQueries * kHeads; ++w) {
    double mass = 0, sum[kValueWidth] = {};
    for (int t = 0; t <= kFirstQuery + w / kHeads; ++t) {
      double score = 0;
      for (int i = 0; i < kKeyWidth; ++i) score += q.row(w)[i] * keys.row(t, 0)[i];
      mass += std::exp(kScale * score);
      for (int i = 0; i < kValueWidth; ++i) sum[i] += std::exp(kScale * score) * keys.row(t, 0)[i];
    }
    for (int i = 0; i < kValueWidth; ++i) ASSERT_NEAR(out.row(w)[i], sum[i] / mass, 1e-12) << "row " << w;
  }
}

TEST_F(Reference, ALogSumIsTheBinaryLogarithmOfTheMass) {
  DeviceRows keys(*backend_, {.dtype = DType::kF64, .width = 1, .rows = 4});
  for (int t = 0; t < 4; ++t) keys.write_row(t, 0, std::vector<double>{1});
  const DeviceMatrix q = matrix(1, 1, std::vector<double>{3});
  double o = 0, log2_sum = 0;
  const AttendSequence sequences[] = {
      {.q_WK = q.ref(), .keys = keys.ref(4), .values = keys.ref(4), .first_query_pos = 3}};
  const KvChunk chunks[] = {{0, 0, 4, 0, true}};
  backend_->attend_partial({.sequences = sequences,
                            .key_width = 1,
                            .value_width = 1,
                            .chunks = chunks,
                            .partials = {&o, &log2_sum, DType::kF64, 1, 1, 1, 1}});
  EXPECT_DOUBLE_EQ(log2_sum, 3 + 2);  // four keys of mass 2^3
  EXPECT_DOUBLE_EQ(o, 1);
}

TEST_F(Reference, LeftOutGroupsLoseEvenToNegativeScores) {
  // Groups {0, 1} and {2, 3}: the biases make every c negative; the second group's sum is larger.
  const DeviceMatrix logits = matrix(1, 4, std::vector<double>{0, 0, 0, 0});
  const DeviceMatrix bias(*backend_, DType::kF32, 1, 4, std::vector<double>{-1, -9, -4, -5});
  const DeviceMatrix ids(*backend_, DType::kI32, 1, 2);
  const DeviceMatrix weights(*backend_, DType::kF64, 1, 2);
  backend_->route({.logits_LE = logits.ref(),
                   .bias_1E = bias.ref(),
                   .groups = 2,
                   .top_groups = 1,
                   .top_k = 2,
                   .scale = 3,
                   .ids_Lk = ids.int_view(),
                   .weights_Lk = weights.ref()});
  EXPECT_EQ(ids.row(0), (std::vector<double>{2, 3}));
  EXPECT_DOUBLE_EQ(weights.row(0)[0], 1.5);
}

TEST_F(Reference, EqualScoresGoToTheLowestId) {
  const DeviceMatrix logits = matrix(1, 4, std::vector<double>{1, 2, 2, 2});
  const DeviceMatrix ids(*backend_, DType::kI32, 1, 2);
  const DeviceMatrix weights(*backend_, DType::kF64, 1, 2);
  backend_->route({.logits_LE = logits.ref(),
                   .bias_1E = {},
                   .score = RouterScore::kSoftmax,
                   .top_k = 2,
                   .normalise = false,
                   .ids_Lk = ids.int_view(),
                   .weights_Lk = weights.ref()});
  EXPECT_EQ(ids.row(0), (std::vector<double>{1, 2}));
  EXPECT_NEAR(weights.row(0)[0], std::exp(2) / (std::exp(1) + 3 * std::exp(2)), 1e-15);
}

TEST_F(Reference, AGatedBlockAddsDownOfSiluGateTimesUp) {
  const DeviceMatrix x = matrix(1, 1, std::vector<double>{2});
  const DeviceMatrix gate(*backend_, DType::kF32, 1, 1, std::vector<double>{0.5});
  const DeviceMatrix up(*backend_, DType::kF32, 1, 1, std::vector<double>{3});
  const DeviceMatrix down(*backend_, DType::kF32, 1, 1, std::vector<double>{-1});
  const DeviceMatrix y = matrix(1, 1, std::vector<double>{100});
  backend_->ffn({StepClass::kDecode, x.ref(), {gate.ref(), up.ref(), down.ref()}, y.ref()});
  EXPECT_NEAR(y.row(0)[0], 100 - 6 / (1 + std::exp(-1)), 1e-13);
}

}  // namespace
}  // namespace latte::test
