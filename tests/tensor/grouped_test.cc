#include "tensor/grouped.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace latte {
namespace {

struct Grouped {
  std::vector<std::byte> bytes;
  ConstMatRef ref;
};

Grouped quantise(std::span<const float> values, std::int64_t rows, std::int64_t cols, DType dtype) {
  Grouped made{std::vector<std::byte>(static_cast<std::size_t>(matrix_bytes(dtype, rows, cols))), {}};
  for (std::int64_t first = 0; first < rows; first += kPanelOutputs) {
    const int outputs = static_cast<int>(std::min<std::int64_t>(kPanelOutputs, rows - first));
    quantise_panel(values.subspan(static_cast<std::size_t>(first * cols), static_cast<std::size_t>(outputs * cols)),
                   cols, outputs, cols, dtype, made.bytes.data() + first / kPanelOutputs * panel_bytes(dtype, cols));
  }
  made.ref = {made.bytes.data(), dtype, rows, cols, cols};
  return made;
}

std::vector<float> gaussian(std::size_t count, float deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

/// Root mean square of the error over that of the values.
double relative_error(std::span<const float> values, const ConstMatRef& w) {
  double error = 0, square = 0;
  std::vector<float> row(static_cast<std::size_t>(w.cols));
  for (std::int64_t n = 0; n < w.rows; ++n) {
    dequantise_row(w, n, row);
    for (std::int64_t k = 0; k < w.cols; ++k) {
      const double value = values[static_cast<std::size_t>(n * w.cols + k)];
      error += std::pow(row[static_cast<std::size_t>(k)] - value, 2);
      square += value * value;
    }
  }
  return std::sqrt(error / square);
}

TEST(Grouped, ErrorsOnGaussianMatricesAreBounded) {
  for (const float deviation : {1.0f, 0.02f, 1e-5f}) {
    const std::vector<float> values = gaussian(100 * 500, deviation);
    EXPECT_LE(relative_error(values, quantise(values, 100, 500, DType::kQ8).ref), 0.006) << deviation;
    EXPECT_LE(relative_error(values, quantise(values, 100, 500, DType::kQ4).ref), 0.085) << deviation;
  }
}

TEST(Grouped, ValuesOfTheGridAreKeptExactly) {
  std::vector<float> values(3 * 70);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.25f * static_cast<float>(static_cast<int>(i * 5 % 16) - 8);
  for (const DType dtype : {DType::kQ4}) {
    const Grouped made = quantise(values, 3, 70, dtype);
    for (std::int64_t n = 0; n < 3; ++n) {
      std::vector<float> row(70);
      dequantise_row(made.ref, n, row);
      for (std::size_t k = 0; k < 64; ++k)
        EXPECT_EQ(row[k], values[static_cast<std::size_t>(n) * 70 + k]) << n << " " << k;
    }
  }
}

TEST(Grouped, ZerosAndTinyGroupsAreZero) {
  std::vector<float> values(16 * 64, 0.0f);
  values[5] = 1e-35f;
  for (const DType dtype : {DType::kQ8, DType::kQ4})
    EXPECT_EQ(relative_error(values, quantise(values, 16, 64, dtype).ref), 1);
}

TEST(Grouped, BlocksAreWholeCacheLines) {
  EXPECT_EQ(block_bytes(DType::kQ8) % 64, 0);
  EXPECT_EQ(block_bytes(DType::kQ4) % 64, 0);
  EXPECT_EQ(matrix_bytes(DType::kQ4, 16, 64), 16 * 64 / 2 + 64);
  EXPECT_EQ(matrix_bytes(DType::kQ8, 17, 65), 4 * (2 * 16 * 32 + 64));
  EXPECT_EQ(matrix_bytes(DType::kBf16, 3, 5), 30);
}

TEST(Grouped, WhatLiesPastAMatrixIsZero) {
  const std::vector<float> values = gaussian(17 * 40, 1);
  const Grouped made = quantise(values, 17, 40, DType::kQ4);
  const ConstMatRef all{made.ref.data, DType::kQ4, 32, 64, 64};  // the same memory with its padding
  for (std::int64_t n = 0; n < 32; ++n) {
    for (std::int64_t k = 0; k < 64; ++k) {
      if (n < 17 && k < 40) continue;
      const GroupedElement element = grouped_element(all, n, k);
      EXPECT_EQ(element.scale * static_cast<float>(element.code), 0) << n << " " << k;
    }
  }
}

TEST(QuantiseGroup, RoundsToNearestEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127;
  x[1] = 2.5f;
  x[2] = 3.5f;
  x[3] = -2.5f;
  std::int8_t codes[kGroupInputs];
  EXPECT_EQ(quantise_group(x, codes), 1);
  EXPECT_EQ(codes[0], 127);
  EXPECT_EQ(codes[1], 2);
  EXPECT_EQ(codes[2], 4);
  EXPECT_EQ(codes[3], -2);
}

TEST(QuantiseGroup, NonFiniteValuesMakeTheScaleNaN) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> x(32, 1.0f);
    x[9] = bad;
    std::int8_t codes[kGroupInputs];
    EXPECT_TRUE(std::isnan(quantise_group(x, codes)));
  }
}

}  // namespace
}  // namespace latte
