#include <algorithm>
#include <cmath>
#include <limits>

#include "device/cpu/cpu_backend.h"

// The router: which experts a row goes to, and with what weight.

namespace latte {
namespace {

constexpr float kLeftOut = -std::numeric_limits<float>::infinity();

/// The index of the largest value that is not yet `taken`; the lowest of equal ones. NaN never wins over a number.
int best_of(const float* values, const float* taken, int count) {
  int best = -1;
  for (int i = 0; i < count; ++i) {
    if (taken[i] != 0) continue;
    if (best < 0 || values[i] > values[best] || (values[best] != values[best] && values[i] == values[i])) best = i;
  }
  return best;
}

void score_row(RouterScore score, const float* logits, int experts, float* scores) {
  if (score == RouterScore::kSigmoid) {
    for (int e = 0; e < experts; ++e)
      scores[e] = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(logits[e]))));
    return;
  }
  const double top = *std::max_element(logits, logits + experts);
  double mass = 0;
  for (int e = 0; e < experts; ++e) mass += std::exp(static_cast<double>(logits[e]) - top);
  for (int e = 0; e < experts; ++e)
    scores[e] = static_cast<float>(std::exp(static_cast<double>(logits[e]) - top) / mass);
}

float group_score(GroupScore kind, const float* choice, int size) {
  float first = kLeftOut;
  float second = kLeftOut;
  for (int i = 0; i < size; ++i) {
    if (choice[i] > first) {
      second = first;
      first = choice[i];
    } else if (choice[i] > second) {
      second = choice[i];
    }
  }
  return kind == GroupScore::kMax || size < 2 ? first : first + second;
}

}  // namespace

void CpuBackend::route_row(const RouteArgs& args, std::int64_t row, Scratch& scratch) const {
  const auto experts = static_cast<int>(args.logits_LE.cols);
  float* scores = scratch.get<float>(0);
  float* choice = scores + experts;
  float* taken = choice + experts;
  float* groups = taken + experts;
  float* group_taken = groups + args.groups;

  score_row(args.score, static_cast<const float*>(args.logits_LE.at(row, 0)), experts, scores);
  const auto* bias = static_cast<const float*>(args.bias_1E.data);
  for (int e = 0; e < experts; ++e) choice[e] = bias == nullptr ? scores[e] : scores[e] + bias[e];
  if (args.top_groups < args.groups) {
    const int size = experts / args.groups;
    for (int g = 0; g < args.groups; ++g) groups[g] = group_score(args.group_score, choice + g * size, size);
    std::fill_n(group_taken, args.groups, 0.0f);
    for (int i = 0; i < args.top_groups; ++i) group_taken[best_of(groups, group_taken, args.groups)] = 1;
    for (int e = 0; e < experts; ++e) {
      if (group_taken[e / size] == 0) choice[e] = kLeftOut;
    }
  }

  std::int32_t* ids = args.ids_Lk.row(row);
  auto* weights = static_cast<float*>(args.weights_Lk.at(row, 0));
  std::fill_n(taken, experts, 0.0f);
  float sum = 0;
  for (int i = 0; i < args.top_k; ++i) {
    ids[i] = best_of(choice, taken, experts);
    taken[ids[i]] = 1;
    weights[i] = scores[ids[i]];
    sum += weights[i];
  }
  const auto scale = static_cast<float>(args.scale);
  for (int i = 0; i < args.top_k; ++i) {
    if (args.normalise) weights[i] /= sum + 1e-20f;
    weights[i] *= scale;
  }
}

void CpuBackend::route(const RouteArgs& args) {
  const std::int64_t experts = args.logits_LE.cols;
  expects(args.logits_LE.dtype == DType::kF32 && args.weights_Lk.dtype == DType::kF32, "activations on cpu are F32");
  expects(args.bias_1E.empty() || (args.bias_1E.dtype == DType::kF32 && args.bias_1E.cols == experts),
          "the router's bias is F32 [E]");
  expects(args.groups > 0 && experts % args.groups == 0 && args.top_groups > 0 && args.top_groups <= args.groups,
          "experts divide into groups");
  expects(args.top_k > 0 && args.top_k <= experts, "a row goes to at most every expert");
  expects(args.ids_Lk.rows == args.logits_LE.rows && args.weights_Lk.rows == args.logits_LE.rows &&
              args.ids_Lk.cols == args.top_k && args.weights_Lk.cols == args.top_k,
          "ids and weights are [L, top_k]");
  for (Scratch& scratch : thread_scratch_) scratch.get<float>(3 * experts + 2 * args.groups);
  constexpr std::int64_t kCostPerExpert = 32;  // two exponentials and the searches
  for_rows(args.logits_LE.rows, experts * kCostPerExpert, [&](std::int64_t row, int thread) {
    route_row(args, row, thread_scratch_[static_cast<std::size_t>(thread)]);
  });
}

}  // namespace latte
