#include "tensor/row_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tensor/half.h"

namespace latte {
namespace {

constexpr CodedPiece kDeepSeek{512, 64};

static_assert(kDeepSeek.bytes() == 8 * 4 + 64 * 2 + 512);
static_assert(CodedPiece{77, 6}.bytes() == 2 * 4 + 6 * 2 + 77 + 3);
static_assert(row_bytes(DType::kQ8, {20, 0}, 80) == 4 * 24);
static_assert(row_bytes(DType::kF16, {}, 576) == 1152);

std::vector<float> gaussian_row(int width, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<std::size_t>(width));
  for (float& value : row) value = normal(bits);
  return row;
}

/// A piece written over `before`.
std::vector<std::byte> written(const std::vector<float>& row, const CodedPiece& piece, std::byte before = {}) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(piece.bytes()), before);
  write_piece(row, piece, bytes);
  return bytes;
}

std::vector<float> through(const std::vector<float>& row, const CodedPiece& piece) {
  std::vector<float> back(row.size());
  read_piece(written(row, piece), piece, back);
  return back;
}

TEST(RowFormat, GaussianRowsLoseAtMostTwoThirdsOfAPercent) {
  double squares = 0, errors = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    const std::vector<float> row = gaussian_row(kDeepSeek.width(), seed), back = through(row, kDeepSeek);
    for (std::size_t i = 0; i < static_cast<std::size_t>(kDeepSeek.coded); ++i) {
      squares += static_cast<double>(row[i]) * row[i];
      errors += std::pow(static_cast<double>(row[i]) - back[i], 2);
    }
  }
  const double relative = std::sqrt(errors / squares);
  RecordProperty("relative_rms_error", std::to_string(relative));
  EXPECT_LE(relative, 0.0067);
  EXPECT_GE(relative, 0.004) << "less than blocks of 64 can lose";
}

TEST(RowFormat, NoColumnIsFurtherOffThanHalfACode) {
  for (const CodedPiece piece : {kDeepSeek, CodedPiece{77, 6}, CodedPiece{1, 0}, CodedPiece{64, 2}}) {
    const std::vector<float> row = gaussian_row(piece.width(), 7), back = through(row, piece);
    for (int i = 0; i < piece.coded; ++i) {
      const auto begin = row.begin() + i / kRowBlock * kRowBlock;
      const auto end = row.begin() + std::min(piece.coded, (i / kRowBlock + 1) * kRowBlock);
      float most = 0;
      for (auto at = begin; at != end; ++at) most = std::max(most, std::abs(*at));
      const auto at = static_cast<std::size_t>(i);
      EXPECT_LE(std::abs(row[at] - back[at]), 0.5001f * most / 127) << i;
    }
  }
}

TEST(RowFormat, ExactColumnsAreBf16) {
  const std::vector<float> row = gaussian_row(kDeepSeek.width(), 3), back = through(row, kDeepSeek);
  for (auto i = static_cast<std::size_t>(kDeepSeek.coded); i < row.size(); ++i)
    EXPECT_EQ(back[i], to_float(to_bf16(row[i]))) << i;
}

TEST(RowFormat, TheLargestValueOfABlockTakesTheLastCode) {
  std::vector<float> row(128, 0.25f);
  row[5] = -3;
  row[100] = 0.5f;
  const std::vector<float> back = through(row, {128, 0});
  EXPECT_FLOAT_EQ(back[5], -3);
  EXPECT_FLOAT_EQ(back[100], 0.5f);
  EXPECT_NEAR(back[6], 0.25f, 0.5 * 3 / 127);
  EXPECT_NEAR(back[101], 0.25f, 0.5 * 0.5 / 127) << "each block has its own scale";
}

TEST(RowFormat, ABlockDependsOnItsOwnColumns) {
  const std::vector<float> row = gaussian_row(kDeepSeek.width(), 4);
  std::vector<float> other = row;
  other[64] *= 100;
  const std::vector<float> back = through(row, kDeepSeek), changed = through(other, kDeepSeek);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i / 64 == 1) continue;
    EXPECT_EQ(back[i], changed[i]) << i;
  }
}

TEST(RowFormat, WhatLayThereBeforeChangesNothing) {
  for (const CodedPiece piece : {kDeepSeek, CodedPiece{77, 6}}) {
    const std::vector<float> row = gaussian_row(piece.width(), 5);
    EXPECT_EQ(written(row, piece, std::byte{0xff}), written(row, piece));
    std::vector<std::byte> again = written(gaussian_row(piece.width(), 6), piece);
    write_piece(row, piece, again);
    EXPECT_EQ(again, written(row, piece));
  }
}

TEST(RowFormat, ZerosStayZerosAndWhatIsNotFiniteIsSeen) {
  const std::vector<float> zeros(64, 0.0f);
  EXPECT_EQ(through(zeros, {64, 0}), zeros);
  EXPECT_EQ(through(std::vector<float>(64, 1e-38f), {64, 0}), zeros) << "127 over it would overflow";
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> row(128, 1.0f);
    row[70] = bad;
    const std::vector<float> back = through(row, {128, 0});
    EXPECT_FLOAT_EQ(back[63], 1);
    EXPECT_TRUE(std::isnan(back[64]) && std::isnan(back[127]));
  }
}

}  // namespace
}  // namespace latte
