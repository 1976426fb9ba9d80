#include "kv/latent_cache.h"

#include <gtest/gtest.h>

#include <cmath>

#include "device/reference/reference_backend.h"

namespace latte {
namespace {

constexpr int kWidth = 5;
constexpr int kLayers = 3;

class LatentCacheTest : public ::testing::Test {
 protected:
  // Appends rows whose values say layer, position and `salt`.
  void append(LatentCache& cache, int rows, float salt) {
    ASSERT_TRUE(cache.reserve(cache.length() + rows).ok());
    for (int layer = 0; layer < kLayers; ++layer) {
      const KeyRows view = cache.layer_rows(layer, cache.length() + rows);
      for (int t = cache.length(); t < cache.length() + rows; ++t) {
        auto* row = static_cast<float*>(view.row(t));
        for (int j = 0; j < kWidth; ++j) row[j] = salt + static_cast<float>(1000 * layer + 10 * t + j);
      }
    }
    cache.append(rows);
  }

  static float value(const LatentCache& cache, int layer, int t, int j) {
    return static_cast<const float*>(cache.layer_rows(layer, cache.length()).row(t))[j];
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
};

TEST_F(LatentCacheTest, HoldsRowsOfEveryLayerAcrossPages) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 100, 0), append(cache, 1, 0), append(cache, 300, 0);
  EXPECT_EQ(cache.length(), 401);
  for (const int t : {0, 99, 100, 127, 128, 255, 256, 400})
    EXPECT_EQ(value(cache, 2, t, 4), static_cast<float>(2000 + 10 * t + 4));
}

TEST_F(LatentCacheTest, GrowthCopiesNothing) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 10000);
  append(cache, 10, 0);
  const void* first = cache.layer_rows(1, 1).row(0);
  append(cache, 5000, 0);
  EXPECT_EQ(cache.layer_rows(1, 1).row(0), first);
  EXPECT_EQ(cache.bytes_per_token(), std::size_t{kLayers * kWidth * 4});
  EXPECT_LT(cache.bytes(), (5010 + LatentCache::kPageRows) * cache.bytes_per_token());
}

TEST_F(LatentCacheTest, RewindDropsExactlyTheRowsPastTheLength) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 200, 0);
  ASSERT_TRUE(cache.rewind_to(127).ok());
  EXPECT_EQ(cache.length(), 127);
  append(cache, 2, 0.5F);
  EXPECT_EQ(value(cache, 0, 126, 0), 1260.0F);
  EXPECT_EQ(value(cache, 0, 127, 0), 1270.5F);
  EXPECT_EQ(cache.length(), 129);
  ASSERT_TRUE(cache.rewind_to(0).ok());
  EXPECT_EQ(cache.length(), 0);
}

TEST_F(LatentCacheTest, RefusesToRewindForwardAndChangesNothing) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 20, 0);
  EXPECT_FALSE(cache.can_rewind_to(21));
  EXPECT_FALSE(cache.can_rewind_to(-1));
  EXPECT_TRUE(cache.can_rewind_to(20));
  EXPECT_FALSE(cache.rewind_to(21).ok());
  EXPECT_EQ(cache.length(), 20);
}

TEST_F(LatentCacheTest, RefusesMoreRowsThanItsCapacity) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 130);
  EXPECT_TRUE(cache.reserve(130).ok());
  const Status full = cache.reserve(131);
  ASSERT_FALSE(full.ok());
  EXPECT_NE(full.error().message.find("131 rows wanted, the context holds 130"), std::string::npos);
}

TEST_F(LatentCacheTest, SnapshotsRestoreEveryByte) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 150, 0);
  const LatentSnapshot snapshot = cache.snapshot();
  append(cache, 50, 0);
  ASSERT_TRUE(cache.rewind_to(100).ok());
  append(cache, 100, 7);
  LatentCache other(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  for (LatentCache* target : {&cache, &other}) {
    ASSERT_TRUE(target->restore(snapshot).ok());
    EXPECT_EQ(target->length(), 150);
    EXPECT_EQ(target->snapshot().bytes, snapshot.bytes);
    EXPECT_EQ(value(*target, 1, 149, 3), 1000 + 1490 + 3.0F);
  }
}

TEST_F(LatentCacheTest, SnapshotsOfLeadingRowsHoldThemAlone) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 150, 3);
  const LatentSnapshot lead = cache.snapshot(140);
  LatentCache target(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(target, 10, 0);
  ASSERT_TRUE(target.prepare(lead.rows()).ok());
  EXPECT_EQ(target.length(), 10) << "room alone changes nothing";
  EXPECT_EQ(value(target, 1, 9, 3), 1000 + 90 + 3.0F);
  ASSERT_TRUE(target.restore(lead.rows()).ok());
  EXPECT_EQ(target.length(), 140);
  EXPECT_EQ(value(target, 2, 139, 3), value(cache, 2, 139, 3));
}

/// Rows of a latent of 70 columns, two blocks, and 4 of rope.
class CodedCacheTest : public LatentCacheTest {
 protected:
  static constexpr CodedPiece kPiece{70, 4};
  static constexpr RowFormat kRow{.width = kPiece.width(), .dtype = DType::kQ8, .piece = kPiece};

  LatentCache cache_{*backend_, kLayers, kRow, 1000};

  void append_coded(int rows, double salt) {
    ASSERT_TRUE(cache_.reserve(cache_.length() + rows).ok());
    std::vector<double> x(static_cast<std::size_t>(rows * kRow.width));
    for (int layer = 0; layer < kLayers; ++layer) {
      for (std::size_t i = 0; i < x.size(); ++i)
        x[i] = std::sin(salt + layer + 0.37 * (static_cast<double>(i) + cache_.length() * kRow.width));
      backend_->store_rows({{x.data(), DType::kF64, rows, kRow.width, kRow.width},
                            cache_.layer_rows(layer, cache_.length() + rows),
                            cache_.length(),
                            0});
    }
    cache_.append(rows);
  }
};

TEST_F(CodedCacheTest, ARowTakesItsCodesScalesAndRope) {
  constexpr std::size_t kRowBytes = 2 * 4 + 4 * 2 + 70 + 2;
  EXPECT_EQ(cache_.row_bytes(), kRowBytes);
  EXPECT_EQ(cache_.bytes_per_token(), kLayers * kRowBytes);
  append_coded(129, 0);
  EXPECT_EQ(cache_.bytes(), 2 * LatentCache::kPageRows * cache_.bytes_per_token());
}

TEST_F(CodedCacheTest, RowsDoNotDependOnTheStepsThatWroteThem) {
  append_coded(200, 0);
  const LatentSnapshot at_once = cache_.snapshot();
  ASSERT_TRUE(cache_.rewind_to(0).ok());
  for (const int rows : {1, 126, 2, 71}) append_coded(rows, 0);
  EXPECT_EQ(cache_.snapshot().bytes, at_once.bytes);
}

TEST_F(CodedCacheTest, ARewindLeavesNoTraceOfTheRowsItDropped) {
  append_coded(150, 0);
  const LatentSnapshot plain = cache_.snapshot();
  ASSERT_TRUE(cache_.rewind_to(120).ok());
  append_coded(80, 9);
  ASSERT_TRUE(cache_.rewind_to(120).ok());
  append_coded(30, 0);
  EXPECT_EQ(cache_.snapshot().bytes, plain.bytes);
}

TEST_F(CodedCacheTest, SnapshotsRestoreEveryByte) {
  append_coded(140, 2);
  const LatentSnapshot snapshot = cache_.snapshot();
  EXPECT_EQ(snapshot.bytes.size(), 140 * cache_.bytes_per_token());
  LatentCache other(*backend_, kLayers, kRow, 1000);
  ASSERT_TRUE(other.restore(snapshot).ok());
  EXPECT_EQ(other.snapshot().bytes, snapshot.bytes);
  const RowFormat cut_otherwise{.width = kRow.width, .dtype = DType::kQ8, .piece = {64, 10}};
  LatentCache another(*backend_, kLayers, cut_otherwise, 1000);
  EXPECT_FALSE(another.restore(snapshot).ok());
}

TEST_F(LatentCacheTest, RefusesTheSnapshotOfAnotherShape) {
  LatentCache cache(*backend_, kLayers, {kWidth, DType::kF32}, 1000);
  append(cache, 3, 0);
  const LatentSnapshot snapshot = cache.snapshot();
  LatentCache narrow(*backend_, kLayers, {kWidth - 1, DType::kF32}, 1000);
  LatentCache shallow(*backend_, kLayers - 1, {kWidth, DType::kF32}, 1000);
  LatentCache half(*backend_, kLayers, {kWidth, DType::kBf16}, 1000);
  LatentCache tiny(*backend_, kLayers, {kWidth, DType::kF32}, 2);
  for (LatentCache* other : {&narrow, &shallow, &half, &tiny}) {
    EXPECT_FALSE(other->restore(snapshot).ok());
    EXPECT_EQ(other->length(), 0);
  }
}

}  // namespace
}  // namespace latte
