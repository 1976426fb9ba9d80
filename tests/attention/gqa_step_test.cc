#include "attention/gqa_step.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "device/open_backend.h"
#include "kv/latent_cache.h"
#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/tolerance.h"

namespace latte {
namespace {

using test::DeviceMatrix;
using test::random_matrix;
using test::random_row;
using test::RowValues;

constexpr int kHidden = 24;

/// A layer of random weights with biases and head norms; the input of a row is a function of its position.
class GqaLayer {
 public:
  GqaLayer(Backend& backend, const GqaGeometry& geometry, int cached)
      : backend_(backend),
        g_(geometry),
        activation_(backend.info().activation),
        cache_(backend, 1, {geometry.cache_width(), DType::kF32}, cached) {
    const auto weight = [&](std::uint64_t seed, int rows, int cols) {
      return DeviceMatrix(backend, DType::kF32, rows, cols, random_matrix(seed, rows, cols, std::sqrt(3.0 / cols)));
    };
    q_ = weight(1, g_.query_width(), kHidden);
    k_ = weight(2, g_.kv_width(), kHidden);
    v_ = weight(3, g_.kv_width(), kHidden);
    o_ = weight(4, kHidden, g_.query_width());
    q_norm_ = weight(5, 1, g_.head_dim);
    k_norm_ = weight(6, 1, g_.head_dim);
    q_bias_ = weight(7, 1, g_.query_width());
    o_bias_ = weight(8, 1, kHidden);
    EXPECT_TRUE(cache_.reserve(cached).ok());
    const int width = g_.cache_width();
    for (int t = 0; t < cached; ++t) {
      const std::vector<double> row = random_row(9, t, width);
      const std::vector<float> floats(row.begin(), row.end());
      backend.write_rows(std::as_bytes(std::span(floats)), cache_.layer_rows(0, cached), t, t + 1, width);
    }
  }

  /// The layer's contribution to rows first .. first + rows - 1, all in one step.
  RowValues step(int first, int rows, Role role) {
    StepPlan plan;
    plan_step(g_, first, rows, role, plan);
    BufferCarver size(nullptr);
    AttentionBuffers::carve(size, plan, 0, activation_);
    const DeviceBuffer memory = test::poisoned_buffer(backend_, size.used());
    BufferCarver carver(memory.data());
    const AttentionBuffers buffers = AttentionBuffers::carve(carver, plan, 0, activation_);
    DeviceMatrix x(backend_, activation_, rows, kHidden), residual(backend_, activation_, rows, kHidden);
    DeviceMatrix cos(backend_, activation_, rows, g_.head_dim / 2), sin(backend_, activation_, rows, g_.head_dim / 2);
    for (int i = 0; i < rows; ++i) {
      x.write_row(i, random_row(10, first + i, kHidden));
      residual.write_row(i, std::vector<double>(kHidden, 0.0));
      std::vector<double> cosines, sines;
      for (int j = 0; j < g_.head_dim / 2; ++j) {
        const double angle = (first + i) * std::pow(1000.0, -2.0 * j / g_.head_dim);
        cosines.push_back(static_cast<float>(std::cos(angle)));
        sines.push_back(static_cast<float>(std::sin(angle)));
      }
      cos.write_row(i, cosines);
      sin.write_row(i, sines);
    }
    const GqaWeights weights{.q_proj = q_.ref(),
                             .k_proj = k_.ref(),
                             .v_proj = v_.ref(),
                             .o_proj = o_.ref(),
                             .q_norm = q_norm_.ref(),
                             .k_norm = k_norm_.ref(),
                             .q_bias = q_bias_.ref(),
                             .k_bias = {},
                             .v_bias = {},
                             .o_bias = o_bias_.ref()};
    gqa_step({.backend = backend_,
              .plan = plan,
              .weights = weights,
              .softmax_scale = 1 / std::sqrt(static_cast<double>(g_.head_dim)),
              .cos_Lp = cos.ref(),
              .sin_Lp = sin.ref(),
              .cached = cache_.layer_rows(0, first + rows),
              .buffers = buffers,
              .x_LD = x.ref(),
              .residual_LD = residual.ref()});
    EXPECT_TRUE(backend_.synchronize().ok());
    EXPECT_TRUE(residual.poison_intact());
    calls = static_cast<int>(plan.calls.size());
    RowValues result;
    for (int i = 0; i < rows; ++i) result.push_back(residual.row(i));
    return result;
  }

  int calls = 0;  ///< of the last step

 private:
  Backend& backend_;
  GqaGeometry g_;
  DType activation_;
  LatentCache cache_;
  DeviceMatrix q_, k_, v_, o_, q_norm_, k_norm_, q_bias_, o_bias_;
};

std::unique_ptr<Backend> open(const std::string& device) {
  return std::move(open_backend({.device = device, .threads = 2, .compute = DType::kF32})).value();
}

constexpr GqaGeometry kSmall{.heads = 6, .kv_heads = 2, .head_dim = 10};

TEST(GqaStep, RowsOfAStepDoNotSeeEachOther) {
  const auto cpu = open("cpu");
  for (const int first : {0, 1, 60, 300, 8184}) {  // the last: rows on both sides of a length class
    GqaLayer layer(*cpu, kSmall, first + 16);
    RowValues alone;
    for (int i = 0; i < 16; ++i) alone.push_back(layer.step(first + i, 1, Role::kGenerated).front());
    for (const int width : {2, 3, 7, 16}) {
      RowValues together;
      for (int at = 0; at < 16; at += width) {
        for (std::vector<double>& row : layer.step(first + at, std::min(width, 16 - at), Role::kGenerated))
          together.push_back(std::move(row));
      }
      EXPECT_EQ(together, alone) << first << " in steps of " << width;
    }
  }
}

TEST(GqaStep, StepAcrossALengthClassTakesTwoCalls) {
  const auto cpu = open("cpu"), reference = open("reference");
  GqaLayer layer(*cpu, kSmall, 16400), oracle(*reference, kSmall, 16400);
  EXPECT_LT(
      test::max_relative_difference(layer.step(16376, 16, Role::kGenerated), oracle.step(16376, 16, Role::kGenerated)),
      test::kModelF32);
  EXPECT_EQ(layer.calls, 2);
}

TEST(GqaStep, EveryGroupingEqualsTheReference) {
  const auto cpu = open("cpu"), reference = open("reference");
  for (const GqaGeometry& g : {GqaGeometry{4, 4, 16}, GqaGeometry{4, 1, 16}, GqaGeometry{1, 1, 2}, kSmall}) {
    GqaLayer layer(*cpu, g, 120), oracle(*reference, g, 120);
    for (const int rows : {1, 2, 40}) {
      EXPECT_LT(
          test::max_relative_difference(layer.step(80, rows, Role::kPrompt), oracle.step(80, rows, Role::kPrompt)),
          test::kModelF32)
          << g.heads << "/" << g.kv_heads << ", " << rows << " rows";
    }
  }
}

TEST(GqaStep, PromptOfSeveralBlocksEqualsTheReference) {
  constexpr GqaGeometry kWide{.heads = 64, .kv_heads = 8, .head_dim = 128};
  const auto cpu = open("cpu"), reference = open("reference");
  GqaLayer layer(*cpu, kWide, 140), oracle(*reference, kWide, 140);
  EXPECT_LT(test::max_relative_difference(layer.step(0, 140, Role::kPrompt), oracle.step(0, 140, Role::kPrompt)),
            test::kModelF32);
  EXPECT_EQ(layer.calls, 2);
}

}  // namespace
}  // namespace latte
