// The two forms of MLA are one function: queries folded through W_UK against latent rows, and the plain queries against
// rows expanded through W_UK and W_UV, give the same heads.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "device/reference/reference_backend.h"
#include "plan/geometry.h"
#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/test_backends.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

constexpr int kQueries = 5;
constexpr int kCached = 150;  // after the step's append
constexpr int kChunk = 64;

/// A layer's attention with random weights, cache and queries [L, H, n + p].
class Layer {
 public:
  Layer(Backend& backend, const MlaGeometry& geometry)
      : backend_(backend),
        g_(geometry),
        activation_(backend.info().activation),
        w_uk_(backend, DType::kF32, g_.heads, g_.n, g_.r, 1, std::sqrt(3.0 / g_.r)),
        w_uv_(backend, DType::kF32, g_.heads, g_.v, g_.r, 2, std::sqrt(3.0 / g_.r)),
        latent_(backend, {.dtype = DType::kF32, .width = g_.latent_width(), .rows = kCached, .page_rows = 64}),
        q_(backend, activation_, kQueries * g_.heads, g_.key_width(),
           random_matrix(4, kQueries * g_.heads, g_.key_width(), 2)) {
    for (int t = 0; t < kCached; ++t) latent_.write_row(t, 0, random_row(3, t, g_.latent_width(), 2));
  }

  /// o [L * H, v].
  RowValues absorbed() {
    DeviceMatrix folded(backend_, activation_, kQueries * g_.heads, g_.latent_width());
    const MatRef q = q_.ref();
    backend_.head_matmul(
        {StepClass::kDecode, q.cols_from(0, g_.n), w_uk_.ref(), HeadSum::kRows, folded.ref().cols_from(0, g_.r)});
    if (g_.p > 0) backend_.copy(q.cols_from(g_.n, g_.p), folded.ref().cols_from(g_.r, g_.p));
    const KeyRows keys = latent_.ref(kCached);
    const AttendSequence sequence{
        .q_WK = folded.ref(), .keys = keys, .values = keys, .first_query_pos = kCached - kQueries};
    const DeviceMatrix context = attended(std::span(&sequence, 1), 1, g_.heads, g_.latent_width(), g_.r);
    DeviceMatrix o(backend_, activation_, kQueries * g_.heads, g_.v);
    backend_.head_matmul({StepClass::kDecode, context.ref(), w_uv_.ref(), HeadSum::kCols, o.ref()});
    RowValues rows;
    for (int row = 0; row < kQueries * g_.heads; ++row) rows.push_back(o.row(row));
    return rows;
  }

  RowValues materialised() {
    DeviceRows keys(backend_, {.dtype = activation_, .lanes = g_.heads, .width = g_.key_width(), .rows = kCached});
    DeviceRows values(backend_, {.dtype = activation_, .lanes = g_.heads, .width = g_.v, .rows = kCached});
    backend_.expand_latent({.latent = latent_.ref(kCached),
                            .begin = 0,
                            .end = kCached,
                            .w_uk_Hnr = w_uk_.ref(),
                            .w_uv_Hvr = w_uv_.ref(),
                            .rope_width = g_.p,
                            .keys = keys.ref(kCached),
                            .values = values.ref(kCached)});
    const MatRef q = q_.ref();
    const AttendSequence sequence{.q_WK = {q.data, q.dtype, kQueries, g_.key_width(), g_.heads * q.row_stride},
                                  .q_lane_stride = q.row_stride,
                                  .keys = keys.ref(kCached),
                                  .values = values.ref(kCached),
                                  .first_query_pos = kCached - kQueries};
    const DeviceMatrix o = attended(std::span(&sequence, 1), g_.heads, 1, g_.key_width(), g_.v);
    RowValues rows;
    for (int l = 0; l < kQueries; ++l) {
      const std::vector<double> heads = o.row(l);
      for (int h = 0; h < g_.heads; ++h) rows.emplace_back(heads.begin() + h * g_.v, heads.begin() + (h + 1) * g_.v);
    }
    return rows;
  }

 private:
  /// [W, lanes * V], merged from a slot per chunk.
  DeviceMatrix attended(std::span<const AttendSequence> sequences, int lanes, int rows_per_query, int key_width,
                        int value_width) {
    const std::int64_t rows = kQueries * rows_per_query;
    std::vector<KvChunk> chunks;
    for (int begin = 0; begin < kCached; begin += kChunk) {
      chunks.push_back({.begin = begin, .end = std::min(begin + kChunk, kCached), .slot = begin / kChunk});
    }
    const int slots = static_cast<int>(chunks.size());
    const DeviceBuffer o = poisoned_buffer(backend_, slots * lanes * rows * value_width * dtype_bytes(activation_));
    const DeviceBuffer sums = poisoned_buffer(backend_, slots * lanes * rows * dtype_bytes(activation_));
    const Partials partials{o.data(), sums.data(), activation_, slots, lanes, rows, value_width};
    backend_.attend_partial({.sequences = sequences,
                             .lanes = lanes,
                             .rows_per_query = rows_per_query,
                             .key_width = key_width,
                             .value_width = value_width,
                             .scale_log2 = std::numbers::log2e / std::sqrt(g_.key_width()),
                             .chunks = chunks,
                             .partials = partials});
    DeviceMatrix out(backend_, activation_, rows, lanes * value_width);
    const MergeRange ranges[] = {{0, slots, 0, rows}};
    backend_.merge_partials({partials, ranges, out.ref(), value_width});
    return out;
  }

  Backend& backend_;
  MlaGeometry g_;
  DType activation_;
  DeviceStack w_uk_, w_uv_;
  DeviceRows latent_;
  DeviceMatrix q_;
};

/// The published shapes with fewer heads and narrower widths in the same proportions.
MlaGeometry scaled(MlaGeometry g) {
  return {.heads = std::min(g.heads, 6), .r = g.r / 8, .p = g.p / 4, .n = g.n / 8, .v = g.v / 8};
}

constexpr MlaGeometry kGeometries[] = {kDeepSeekV3, kDeepSeekV2Lite, kGlm47Flash, kGlm53Flash, kMiniCpm3};

TEST(MaterialisedEqualsAbsorbed, OnTheReference) {
  const std::unique_ptr<Backend> reference = make_reference_backend();
  for (const MlaGeometry& geometry : kGeometries) {
    Layer layer(*reference, scaled(geometry));
    EXPECT_LE(max_relative_difference(layer.materialised(), layer.absorbed()), 1e-13);
  }
}

TEST(MaterialisedEqualsAbsorbed, OnTheProcessor) {
  const std::unique_ptr<Backend> reference = make_reference_backend();
  Result<std::unique_ptr<Backend>> cpu = open_cpu({"auto", 2});
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  for (const MlaGeometry& geometry : kGeometries) {
    Layer oracle(*reference, scaled(geometry));
    const RowValues expected = oracle.absorbed();
    Layer layer(**cpu, scaled(geometry));
    EXPECT_LE(max_relative_difference(layer.absorbed(), expected), kFloatAttention);
    EXPECT_LE(max_relative_difference(layer.materialised(), expected), kFloatAttention);
  }
}

TEST(MaterialisedEqualsAbsorbed, AtFullWidth) {
  Result<std::unique_ptr<Backend>> cpu = open_cpu({"auto", 2});
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  MlaGeometry geometry = kDeepSeekV3;
  geometry.heads = 4;
  Layer layer(**cpu, geometry);
  EXPECT_LE(max_relative_difference(layer.materialised(), layer.absorbed()), kFloatAttention);
}

}  // namespace
}  // namespace latte::test
