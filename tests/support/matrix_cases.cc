// Cases of matmul, head_matmul and expand_latent.
#include <fmt/format.h>

#include <cmath>

#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

/// Keeps sums over K near 1.
double weight_scale(int summed) { return std::sqrt(3.0 / summed); }

/// Two products of one x in one launch: the second has half the outputs and adds to what is there.
OperationCase matmul_case(DType dtype, int rows, int outputs, int summed, bool biased = false) {
  const int second_outputs = outputs / 2 + 1;
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix x, w, second_w, y, second_y, bias, second_bias;
    };
    auto state = std::make_shared<State>();
    const DType activation = backend.info().activation;
    const std::int64_t count = static_cast<std::int64_t>(row_numbers.size());
    state->x = DeviceMatrix(backend, activation, count, summed);
    state->w = DeviceMatrix(backend, dtype, outputs, summed, random_matrix(51, outputs, summed, weight_scale(summed)));
    state->second_w = DeviceMatrix(backend, dtype, second_outputs, summed,
                                   random_matrix(52, second_outputs, summed, weight_scale(summed)));
    state->y = DeviceMatrix(backend, activation, count, outputs);
    state->second_y = DeviceMatrix(backend, activation, count, second_outputs);
    state->bias = DeviceMatrix(backend, DType::kF32, 1, outputs, random_row(55, 0, outputs));
    state->second_bias = DeviceMatrix(backend, DType::kF32, 1, second_outputs, random_row(56, 0, second_outputs));
    for (std::int64_t i = 0; i < count; ++i) {
      state->x.write_row(i, random_row(53, row_numbers[i], summed));
      state->second_y.write_row(i, random_row(54, row_numbers[i], second_outputs));
    }
    return PreparedOperation{[=, &backend] {
                               Projection projections[] = {{state->w.ref(), state->y.ref(), false},
                                                           {state->second_w.ref(), state->second_y.ref(), true}};
                               if (biased) projections[0].bias = state->bias.ref();
                               if (biased) projections[1].bias = state->second_bias.ref();
                               backend.matmul({count <= kMaxDecodeRows ? StepClass::kDecode : StepClass::kPrompt,
                                               state->x.ref(), projections});
                             },
                             [=] {
                               RowValues rows_of_y;
                               for (std::int64_t i = 0; i < count; ++i) {
                                 std::vector<double>& values = rows_of_y.emplace_back(state->y.row(i));
                                 const std::vector<double> second = state->second_y.row(i);
                                 values.insert(values.end(), second.begin(), second.end());
                               }
                               return rows_of_y;
                             },
                             [state] { return state->y.poison_intact() && state->second_y.poison_intact(); }};
  };
  return {fmt::format("matmul/{}_M{}_N{}_K{}{}", type_word(dtype), rows, outputs, summed, biased ? "_biased" : ""),
          rows, true, prepare,
          [dtype, rows](const Rounding& rounding) { return sum_tolerance(dtype, rounding, rows); }};
}

OperationCase head_matmul_case(DType dtype, HeadSum sum, int rows, int heads, int outputs, int summed) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix x, y;
      DeviceStack w;
    };
    auto state = std::make_shared<State>();
    const DType activation = backend.info().activation;
    const int count = static_cast<int>(row_numbers.size());
    state->x = DeviceMatrix(backend, activation, count * heads, summed);
    state->y = DeviceMatrix(backend, activation, count * heads, outputs);
    state->w = sum == HeadSum::kCols ? DeviceStack(backend, dtype, heads, outputs, summed, 61, weight_scale(summed))
                                     : DeviceStack(backend, dtype, heads, summed, outputs, 61, weight_scale(summed));
    for (int i = 0; i < count; ++i) {
      for (int h = 0; h < heads; ++h) {
        state->x.write_row(i * heads + h, random_row(62, row_numbers[i] * heads + h, summed));
      }
    }
    return PreparedOperation{[=, &backend] {
                               backend.head_matmul({count <= kMaxDecodeRows ? StepClass::kDecode : StepClass::kPrompt,
                                                    state->x.ref(), state->w.ref(), sum, state->y.ref()});
                             },
                             [=] {
                               RowValues rows_of_y;
                               for (int i = 0; i < count; ++i) {
                                 std::vector<double>& values = rows_of_y.emplace_back();
                                 for (int h = 0; h < heads; ++h) {
                                   const std::vector<double> head = state->y.row(i * heads + h);
                                   values.insert(values.end(), head.begin(), head.end());
                                 }
                               }
                               return rows_of_y;
                             },
                             [state] { return state->y.poison_intact(); }};
  };
  return {fmt::format("head_matmul/{}_{}_L{}_H{}_N{}_K{}", sum == HeadSum::kCols ? "cols" : "rows", type_word(dtype),
                      rows, heads, outputs, summed),
          rows, true, prepare,
          [dtype, rows](const Rounding& rounding) { return sum_tolerance(dtype, rounding, rows); }};
}

struct ExpandShape {
  DType weights = DType::kBf16;
  DType cache = DType::kBf16;
  int heads = 1, r = 0, p = 0, n = 0, v = 0;
  int begin = 0, rows = 0;
  bool wide_latent = false;  ///< cached rows are wider than r + p
};

/// Row i of the case is latent row begin + i; what it comes to is K and V of every head.
OperationCase expand_case(const ExpandShape& shape) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceRows latent, keys, values;
      DeviceStack w_uk, w_uv;
    };
    auto state = std::make_shared<State>();
    const int count = static_cast<int>(row_numbers.size());
    const int end = shape.begin + count;
    const DType workspace = backend.info().activation;
    state->latent = DeviceRows(backend, {.dtype = shape.cache,
                                         .width = shape.r + shape.p,
                                         .rows = end,
                                         .page_rows = 64,
                                         .packed = !shape.wide_latent,
                                         .placement = 71,
                                         .piece = {shape.r, shape.p}});
    for (int t = 0; t < end; ++t) state->latent.write_row(t, 0, random_row(72, t, shape.r + shape.p));
    state->w_uk = DeviceStack(backend, shape.weights, shape.heads, shape.n, shape.r, 73, weight_scale(shape.r));
    state->w_uv = DeviceStack(backend, shape.weights, shape.heads, shape.v, shape.r, 74, weight_scale(shape.r));
    // Lane h is a block of rows of its own, as in a workspace [H, rows, width]: one page per lane, seen as one.
    const int n = shape.n, p = shape.p, v = shape.v, heads = shape.heads;
    state->keys = DeviceRows(backend, {.dtype = workspace, .width = n + p, .rows = heads * count, .packed = true});
    state->values = DeviceRows(backend, {.dtype = workspace, .width = v, .rows = heads * count, .packed = true});
    return PreparedOperation{[=, &backend] {
                               KeyRows keys = state->keys.ref(count);
                               KeyRows values = state->values.ref(count);
                               keys.lane_stride = static_cast<std::int64_t>(count) * (n + p);
                               values.lane_stride = static_cast<std::int64_t>(count) * v;
                               backend.expand_latent({.latent = state->latent.ref(end),
                                                      .begin = shape.begin,
                                                      .end = end,
                                                      .w_uk_Hnr = state->w_uk.ref(),
                                                      .w_uv_Hvr = state->w_uv.ref(),
                                                      .rope_width = p,
                                                      .keys = keys,
                                                      .values = values});
                             },
                             [=] {
                               RowValues expanded;
                               for (int i = 0; i < count; ++i) {
                                 std::vector<double>& row = expanded.emplace_back();
                                 for (int h = 0; h < heads; ++h) {
                                   for (const DeviceRows* part : {&state->keys, &state->values}) {
                                     const std::vector<double> head = part->row(h * count + i, 0);
                                     row.insert(row.end(), head.begin(), head.end());
                                   }
                                 }
                               }
                               return expanded;
                             },
                             [] { return true; }};
  };
  return {fmt::format("expand_latent/{}_{}cache_H{}_r{}_p{}_n{}_v{}_begin{}_rows{}{}", type_word(shape.weights),
                      type_word(shape.cache), shape.heads, shape.r, shape.p, shape.n, shape.v, shape.begin, shape.rows,
                      shape.wide_latent ? "_wide" : ""),
          shape.rows, false, prepare,
          [shape](const Rounding& rounding) { return sum_tolerance(shape.weights, rounding, shape.rows); }};
}

}  // namespace

std::vector<OperationCase> matrix_cases() {
  std::vector<OperationCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    for (int rows = 1; rows <= 17; ++rows) cases.push_back(matmul_case(dtype, rows, 40, 100));
    for (const int rows : {1, 5, 16, 33, 64}) cases.push_back(matmul_case(dtype, rows, 129, 384));
    for (const int summed : {1, 7, 8, 15, 31, 33, 48, 65}) cases.push_back(matmul_case(dtype, 3, 17, summed));
    for (const int outputs : {1, 2, 15}) cases.push_back(matmul_case(dtype, 4, outputs, 72));
    cases.push_back(matmul_case(dtype, 64, 256, 1024));
    // Sums that go on from pass to pass over K, of panels and of what is left of them.
    for (const int rows : {1, 2, 3, 4, 5, 8, 11, 13, 16, 17}) cases.push_back(matmul_case(dtype, rows, 55, 2304));
    for (const int rows : {3, 8}) cases.push_back(matmul_case(dtype, rows, 25, 1025));
    cases.push_back(matmul_case(dtype, 300, 33, 50));
    for (const int rows : {1, 6, 16, 33}) cases.push_back(matmul_case(dtype, rows, 35, 100, true));
    for (const HeadSum sum : {HeadSum::kCols, HeadSum::kRows}) {
      cases.push_back(head_matmul_case(dtype, sum, 1, 8, 128, 64));
      cases.push_back(head_matmul_case(dtype, sum, 16, 3, 33, 17));
      cases.push_back(head_matmul_case(dtype, sum, 17, 16, 64, 128));
      cases.push_back(head_matmul_case(dtype, sum, 5, 1, 1, 9));
      cases.push_back(head_matmul_case(dtype, sum, 64, 2, 20, 40));
    }
  }
  for (const DType dtype : {DType::kQ8, DType::kQ4}) {
    for (int rows = 1; rows <= 17; ++rows) cases.push_back(matmul_case(dtype, rows, 40, 100));
    for (const int rows : {1, 4, 16, 33}) cases.push_back(matmul_case(dtype, rows, 130, 1024));
    for (const int summed : {1, 31, 32, 33, 63, 64, 65, 97, 300}) cases.push_back(matmul_case(dtype, 3, 17, summed));
    for (const int outputs : {1, 15, 16}) cases.push_back(matmul_case(dtype, 5, outputs, 72));
    cases.push_back(matmul_case(dtype, 18, 20, 330));
    cases.push_back(matmul_case(dtype, 300, 33, 50));
    cases.push_back(matmul_case(dtype, 16, 35, 100, true));
  }
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    cases.push_back(expand_case({dtype, dtype, 3, 16, 8, 10, 12, 0, 70}));
    cases.push_back(expand_case({dtype, dtype, 8, 128, 32, 64, 64, 60, 200}));
    cases.push_back(expand_case({dtype, dtype, 2, 64, 0, 24, 32, 1, 1}));
    cases.push_back(expand_case({dtype, dtype, 4, 32, 16, 7, 9, 63, 66, true}));
  }
  cases.push_back(expand_case({DType::kF32, DType::kBf16, 2, 48, 16, 20, 16, 3, 33}));
  cases.push_back(expand_case({DType::kBf16, DType::kF32, 2, 48, 16, 20, 16, 3, 33}));
  for (const DType cache : {DType::kF16, DType::kQ8}) {
    cases.push_back(expand_case({DType::kBf16, cache, 2, 77, 6, 20, 16, 3, 33}));
    cases.push_back(expand_case({DType::kF32, cache, 4, 128, 32, 24, 12, 60, 200}));
    cases.push_back(expand_case({DType::kF32, cache, 2, 64, 0, 24, 32, 1, 1, true}));
  }
  return cases;
}

}  // namespace latte::test
