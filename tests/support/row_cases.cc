// Cases of the operations that work on one row at a time: embed, rms_norm, rope, store_rows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

RowValues rows_of(const DeviceMatrix& matrix) {
  RowValues rows;
  for (std::int64_t i = 0; i < matrix.ref().rows; ++i) rows.push_back(matrix.row(i));
  return rows;
}

DeviceMatrix activations(Backend& backend, std::span<const int> rows, int cols, std::uint64_t seed, double scale = 1) {
  DeviceMatrix matrix(backend, backend.info().activation, static_cast<std::int64_t>(rows.size()), cols);
  for (std::size_t i = 0; i < rows.size(); ++i) matrix.write_row(i, random_row(seed, rows[i], cols, scale));
  return matrix;
}

OperationCase embed_case(DType dtype, int vocabulary, int width, int rows, double scale = 1) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix table, out;
      std::vector<std::int32_t> ids;
    };
    auto state = std::make_shared<State>();
    state->table = DeviceMatrix(backend, dtype, vocabulary, width, random_matrix(11, vocabulary, width));
    state->out = DeviceMatrix(backend, backend.info().activation, row_numbers.size(), width);
    for (const int row : row_numbers)
      state->ids.push_back(static_cast<std::int32_t>(row == 0 ? vocabulary - 1 : mix(12, row) % vocabulary));
    return PreparedOperation{[=, &backend] {
                               backend.embed({state->table.ref(), state->ids, state->out.ref(), scale});
                             },
                             [state] { return rows_of(state->out); }, [state] { return state->out.poison_intact(); }};
  };
  return {fmt::format("embed/{}_V{}_D{}{}", type_word(dtype), vocabulary, width, scale == 1 ? "" : "_scaled"), rows,
          true, prepare, [scale](const Rounding&) { return scale == 1 ? kExact : kFloatSums; }};
}

OperationCase norm_case(int width, int rows, bool in_place, double scale) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix x, weight, y;
    };
    auto state = std::make_shared<State>();
    state->x = activations(backend, row_numbers, width, 21, scale);
    state->weight = DeviceMatrix(backend, DType::kF32, 1, width, random_row(22, 0, width));
    state->y = DeviceMatrix(backend, backend.info().activation, row_numbers.size(), width);
    const DeviceMatrix* y = in_place ? &state->x : &state->y;
    return PreparedOperation{[&backend, state, y] {
                               backend.rms_norm({state->x.ref(), state->weight.ref(), 1e-6, y->ref()});
                             },
                             [state, y] { return rows_of(*y); }, [state, y] { return y->poison_intact(); }};
  };
  return {fmt::format("rms_norm/D{}{}{}", width, in_place ? "_in_place" : "", scale == 0 ? "_zeros" : ""), rows, true,
          prepare, [](const Rounding&) { return kFloatSums; }};
}

/// x is columns [n, n + p) of each head's [n + p], as a query's rope part lies.
OperationCase rope_case(RopeStyle style, int heads, int p, int rows) {
  constexpr int kNope = 3;
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix x, cos, sin;
    };
    auto state = std::make_shared<State>();
    const DType activation = backend.info().activation;
    state->x = DeviceMatrix(backend, activation, row_numbers.size() * heads, kNope + p);
    state->cos = DeviceMatrix(backend, activation, row_numbers.size(), p / 2);
    state->sin = DeviceMatrix(backend, activation, row_numbers.size(), p / 2);
    for (std::size_t i = 0; i < row_numbers.size(); ++i) {
      const int row = row_numbers[i];
      for (int h = 0; h < heads; ++h) {
        state->x.write_row(i * heads + h, random_row(31, row * heads + h, kNope + p));
      }
      std::vector<double> cos, sin;
      for (const double angle : random_row(32, row, p / 2, 3.14159)) {
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
      state->cos.write_row(i, cos);
      state->sin.write_row(i, sin);
    }
    return PreparedOperation{
        [=, &backend] {
          backend.rope({state->x.ref().cols_from(kNope, p), heads, state->cos.ref(), state->sin.ref(), style});
        },
        [=] {
          RowValues rows_by_query;
          for (std::size_t i = 0; i < state->x.ref().rows / static_cast<std::size_t>(heads); ++i) {
            std::vector<double>& values = rows_by_query.emplace_back();
            for (int h = 0; h < heads; ++h) {
              const std::vector<double> head = state->x.row(i * heads + h);
              values.insert(values.end(), head.begin(), head.end());
            }
          }
          return rows_by_query;
        },
        [state] { return state->x.poison_intact(); }};
  };
  return {fmt::format("rope/{}_heads{}_p{}", style == RopeStyle::kInterleaved ? "interleaved" : "half_split", heads, p),
          rows, true, prepare, [](const Rounding&) { return kFloatSums; }};
}

/// Whole rows are read back, so that a column beside the stored ones shows when it was touched.
OperationCase store_case(DType dtype, int page_rows, int first_row, int first_col, int width, int rows,
                         CodedPiece piece = {}) {
  constexpr int kRowWidth = 160;
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix x;
      DeviceRows cache;
    };
    auto state = std::make_shared<State>();
    const int count = static_cast<int>(row_numbers.size());
    state->x = activations(backend, row_numbers, width, 41, 3);
    state->cache = DeviceRows(backend, {.dtype = dtype,
                                        .width = kRowWidth,
                                        .rows = first_row + count + 1,
                                        .page_rows = page_rows,
                                        .placement = 42,
                                        .piece = piece});
    return PreparedOperation{[=, &backend] {
                               backend.store_rows({state->x.ref(), state->cache.ref(first_row), first_row, first_col});
                             },
                             [=] {
                               RowValues stored;
                               for (int i = 0; i < count; ++i) {
                                 for (double& value : stored.emplace_back(state->cache.row(first_row + i, 0))) {
                                   if (std::isnan(value)) value = kUntouched;
                                 }
                               }
                               return stored;
                             },
                             [=] {
                               const std::vector<double> after = state->cache.row(first_row + count, 0);
                               return std::all_of(after.begin(), after.end(),
                                                  [](double value) { return std::isnan(value); });
                             }};
  };
  return {
      fmt::format("store_rows/{}_page{}_row{}_col{}_width{}", type_word(dtype), page_rows, first_row, first_col, width),
      rows, true, prepare, [](const Rounding&) { return kExact; }};
}

}  // namespace

std::vector<OperationCase> row_cases() {
  std::vector<OperationCase> cases;
  for (const DType dtype : {DType::kF32, DType::kBf16}) {
    cases.push_back(embed_case(dtype, 37, 33, 16));
    cases.push_back(embed_case(dtype, 128, 384, 5));
    cases.push_back(embed_case(dtype, 37, 33, 7, 12 / 0.178));
  }
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16}) {
    cases.push_back(store_case(dtype, 64, 60, 0, 128, 16));
    cases.push_back(store_case(dtype, 64, 63, 128, 32, 2));
    cases.push_back(store_case(dtype, 0, 0, 7, 13, 1));
    cases.push_back(store_case(dtype, 128, 100, 0, 160, 300));
  }
  // One piece with rope behind it, and pieces of heads that no block fills.
  cases.push_back(store_case(DType::kQ8, 64, 60, 0, 160, 16, {128, 32}));
  cases.push_back(store_case(DType::kQ8, 128, 100, 0, 160, 300, {150, 10}));
  cases.push_back(store_case(DType::kQ8, 0, 0, 80, 40, 2, {20, 0}));
  for (const int width : {1, 7, 128, 384, 1000}) cases.push_back(norm_case(width, 17, false, 2));
  cases.push_back(norm_case(384, 16, true, 1e-4));
  cases.push_back(norm_case(24, 3, false, 0));
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalfSplit}) {
    cases.push_back(rope_case(style, 1, 2, 3));
    cases.push_back(rope_case(style, 8, 32, 16));
    cases.push_back(rope_case(style, 3, 64, 17));
    cases.push_back(rope_case(style, 5, 6, 1));
  }
  return cases;
}

}  // namespace latte::test
