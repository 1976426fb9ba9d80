// Cases of route, experts and ffn.
#include <fmt/format.h>

#include <cmath>

#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

struct RouteShape {
  std::string name;
  int experts = 0;
  int groups = 1, top_groups = 1, top_k = 1;
  RouterScore score = RouterScore::kSigmoid;
  GroupScore group_score = GroupScore::kTop2Sum;
  bool normalise = true;
  double scale = 1;
  double bias = 0;  ///< largest magnitude; 0: no bias at all
  double bias_shift = 0;
  double step = 0;  ///< logits are multiples of it, so that many are equal
};

/// A row is the chosen ids over E, then their weights: one wrong id is far beyond any rounding.
OperationCase route_case(const RouteShape& shape, int rows) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    struct State {
      DeviceMatrix logits, bias, ids, weights;
    };
    auto state = std::make_shared<State>();
    const DType activation = backend.info().activation;
    const std::int64_t count = static_cast<std::int64_t>(row_numbers.size());
    state->logits = DeviceMatrix(backend, activation, count, shape.experts);
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<double> logits = random_row(91, row_numbers[i], shape.experts, 4);
      if (shape.step != 0) {
        for (double& logit : logits) logit = std::round(logit / shape.step) * shape.step;
      }
      state->logits.write_row(i, logits);
    }
    std::vector<double> bias = random_row(92, 0, shape.experts, shape.bias);
    for (double& value : bias) value = static_cast<float>(value + shape.bias_shift);
    state->bias = DeviceMatrix(backend, DType::kF32, 1, shape.experts, bias);
    state->ids = DeviceMatrix(backend, DType::kI32, count, shape.top_k);
    state->weights = DeviceMatrix(backend, activation, count, shape.top_k);
    return PreparedOperation{
        [=, &backend] {
          backend.route({.logits_LE = state->logits.ref(),
                         .bias_1E = shape.bias == 0 ? ConstMatRef{} : ConstMatRef(state->bias.ref()),
                         .score = shape.score,
                         .group_score = shape.group_score,
                         .groups = shape.groups,
                         .top_groups = shape.top_groups,
                         .top_k = shape.top_k,
                         .normalise = shape.normalise,
                         .scale = shape.scale,
                         .ids_Lk = state->ids.int_view(),
                         .weights_Lk = state->weights.ref()});
        },
        [=] {
          RowValues chosen;
          for (std::int64_t i = 0; i < count; ++i) {
            std::vector<double>& row = chosen.emplace_back(state->ids.row(i));
            for (double& id : row) id /= shape.experts;
            const std::vector<double> weights = state->weights.row(i);
            row.insert(row.end(), weights.begin(), weights.end());
          }
          return chosen;
        },
        [state] { return state->ids.poison_intact() && state->weights.poison_intact(); }};
  };
  return {"route/" + shape.name, rows, true, prepare, [](const Rounding&) { return kFloatSums; }};
}

struct ExpertMatrices {
  DeviceMatrix gate, up, down;

  ExpertMatrices(Backend& backend, DType dtype, int width, int inner, std::uint64_t seed)
      : gate(backend, dtype, inner, width, random_matrix(mix(seed, 0), inner, width, 2 * std::sqrt(3.0 / width))),
        up(backend, dtype, inner, width, random_matrix(mix(seed, 1), inner, width, std::sqrt(3.0 / width))),
        down(backend, dtype, width, inner, random_matrix(mix(seed, 2), width, inner, std::sqrt(3.0 / inner))) {}

  ExpertWeights weights() const { return {gate.ref(), up.ref(), down.ref()}; }
};

struct ExpertState {
  std::vector<ExpertMatrices> matrices;
  std::vector<ExpertWeights> experts;
  ExpertWeights shared;
  DeviceMatrix x, weights, ids, y;
};

RowValues rows_of(const DeviceMatrix& matrix) {
  RowValues rows;
  for (std::int64_t i = 0; i < matrix.ref().rows; ++i) rows.push_back(matrix.row(i));
  return rows;
}

struct ExpertShape {
  DType dtype = DType::kF32;
  int width = 0, inner = 0;
  int experts = 0, top_k = 1;
  int used = 0;          ///< rows choose among the first `used` experts only
  int shared_inner = 0;  ///< 0: no shared expert
};

void fill_rows(Backend& backend, const ExpertShape& shape, std::span<const int> row_numbers, ExpertState& state) {
  const DType activation = backend.info().activation;
  const std::int64_t count = static_cast<std::int64_t>(row_numbers.size());
  state.x = DeviceMatrix(backend, activation, count, shape.width);
  state.y = DeviceMatrix(backend, activation, count, shape.width);
  state.weights = DeviceMatrix(backend, activation, count, shape.top_k);
  state.ids = DeviceMatrix(backend, DType::kI32, count, shape.top_k);
  for (std::int64_t i = 0; i < count; ++i) {
    const int row = row_numbers[i];
    state.x.write_row(i, random_row(101, row, shape.width));
    state.y.write_row(i, random_row(102, row, shape.width));
    state.weights.write_row(i, random_row(103, row, shape.top_k));
    const std::vector<int> order = shuffled(mix(104, row), shape.used);
    state.ids.write_row(i, std::vector<double>(order.begin(), order.begin() + shape.top_k));
  }
}

OperationCase experts_case(const ExpertShape& shape, int rows) {
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    auto state = std::make_shared<ExpertState>();
    for (int e = 0; e < shape.experts; ++e) {
      state->matrices.emplace_back(backend, shape.dtype, shape.width, shape.inner, mix(105, e));
      state->experts.push_back(state->matrices.back().weights());
    }
    if (shape.shared_inner > 0) {
      state->matrices.emplace_back(backend, shape.dtype, shape.width, shape.shared_inner, 106);
      state->shared = state->matrices.back().weights();
    }
    fill_rows(backend, shape, row_numbers, *state);
    return PreparedOperation{
        [=, &backend] {
          const MatView<std::int32_t> ids = state->ids.int_view();
          backend.experts({.step_class = ids.rows <= kMaxDecodeRows ? StepClass::kDecode : StepClass::kPrompt,
                           .x_LD = state->x.ref(),
                           .experts = state->experts,
                           .shared = shape.shared_inner > 0 ? &state->shared : nullptr,
                           .weights_Lk = state->weights.ref(),
                           .ids_Lk = {ids.data, ids.rows, ids.cols, ids.row_stride},
                           .y_LD = state->y.ref()});
        },
        [state] { return rows_of(state->y); }, [state] { return state->y.poison_intact(); }};
  };
  return {fmt::format("experts/{}_L{}_D{}_I{}_E{}_k{}_used{}_shared{}", type_word(shape.dtype), rows, shape.width,
                      shape.inner, shape.experts, shape.top_k, shape.used, shape.shared_inner),
          rows, true, prepare,
          [shape, rows](const Rounding& rounding) { return gated_tolerance(shape.dtype, rounding, rows); }};
}

OperationCase ffn_case(DType dtype, int width, int inner, int rows) {
  const ExpertShape shape{.dtype = dtype, .width = width, .inner = inner, .top_k = 1, .used = 1};
  const auto prepare = [=](Backend& backend, std::span<const int> row_numbers) {
    auto state = std::make_shared<ExpertState>();
    state->matrices.emplace_back(backend, dtype, width, inner, 107);
    fill_rows(backend, shape, row_numbers, *state);
    return PreparedOperation{
        [=, &backend] {
          backend.ffn({.step_class = state->x.ref().rows <= kMaxDecodeRows ? StepClass::kDecode : StepClass::kPrompt,
                       .x_LD = state->x.ref(),
                       .weights = state->matrices[0].weights(),
                       .y_LD = state->y.ref()});
        },
        [state] { return rows_of(state->y); }, [state] { return state->y.poison_intact(); }};
  };
  return {fmt::format("ffn/{}_L{}_D{}_I{}", type_word(dtype), rows, width, inner), rows, true, prepare,
          [dtype, rows](const Rounding& rounding) { return gated_tolerance(dtype, rounding, rows); }};
}

}  // namespace

std::vector<OperationCase> expert_cases() {
  std::vector<OperationCase> cases;
  const RouteShape grouped{
      .name = "", .experts = 16, .groups = 4, .top_groups = 2, .top_k = 4, .scale = 2.5, .bias = 0.3};
  const auto add_route = [&](const std::string& name, RouteShape shape, int rows) {
    shape.name = name;
    cases.push_back(route_case(shape, rows));
  };
  add_route("sigmoid_groups_top2", grouped, 17);
  RouteShape shape = grouped;
  shape.bias_shift = -3;
  add_route("negative_bias", shape, 16);
  shape = grouped;
  shape.bias = 0;
  shape.step = 2;
  add_route("ties", shape, 40);
  shape.score = RouterScore::kSoftmax;
  shape.group_score = GroupScore::kMax;
  add_route("softmax_group_max_ties", shape, 40);
  shape.step = 0;
  shape.normalise = false;
  add_route("softmax_group_max", shape, 9);
  add_route("one_group", {.name = "", .experts = 7, .top_k = 3}, 5);
  add_route("every_expert", {.name = "", .experts = 6, .top_k = 6}, 3);
  add_route("one_expert_a_group", {.name = "", .experts = 8, .groups = 8, .top_groups = 3, .top_k = 2}, 3);
  add_route("experts256",
            {.name = "", .experts = 256, .groups = 8, .top_groups = 4, .top_k = 8, .scale = 2.5, .bias = 0.1}, 33);

  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kQ8, DType::kQ4}) {
    cases.push_back(experts_case({dtype, 384, 64, 16, 4, 16, 64}, 1));
    cases.push_back(experts_case({dtype, 384, 64, 16, 4, 16, 64}, 16));
    cases.push_back(experts_case({dtype, 33, 17, 5, 2, 3, 0}, 7));
    cases.push_back(experts_case({dtype, 40, 24, 3, 1, 1, 9}, 20));
    cases.push_back(experts_case({dtype, 64, 48, 8, 3, 8, 0}, 100));
    for (const int rows : {1, 2, 16, 17}) cases.push_back(ffn_case(dtype, 96, 200, rows));
    cases.push_back(ffn_case(dtype, 31, 7, 3));
    cases.push_back(ffn_case(dtype, 384, 1024, 65));
    for (const int rows : {1, 3, 8, 13, 17}) cases.push_back(ffn_case(dtype, 2304, 50, rows));
    cases.push_back(ffn_case(dtype, 48, 1100, 9));
  }
  return cases;
}

}  // namespace latte::test
