#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/reference/operations.h"
#include "device/reference/rows_of_doubles.h"

namespace latte::reference {
namespace {

constexpr double kLeftOut = -std::numeric_limits<double>::infinity();

std::vector<double> scores_of(const double* logits_E, std::int64_t experts, RouterScore kind) {
  std::vector<double> scores_E(static_cast<std::size_t>(experts));
  if (kind == RouterScore::kSigmoid) {
    for (std::int64_t e = 0; e < experts; ++e) scores_E[e] = 1 / (1 + std::exp(-logits_E[e]));
    return scores_E;
  }
  const double top = *std::max_element(logits_E, logits_E + experts);
  double sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) sum += scores_E[e] = std::exp(logits_E[e] - top);
  for (double& score : scores_E) score /= sum;
  return scores_E;
}

double group_score(std::span<const double> choice_e, GroupScore kind) {
  std::vector<double> sorted_e(choice_e.begin(), choice_e.end());
  std::sort(sorted_e.begin(), sorted_e.end(), std::greater<>());
  return kind == GroupScore::kTop2Sum && sorted_e.size() > 1 ? sorted_e[0] + sorted_e[1] : sorted_e[0];
}

/// Indices of the `count` largest values in descending order, equal values by lowest index.
std::vector<std::int32_t> largest(std::span<const double> values, int count) {
  std::vector<std::int32_t> order(values.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return values[a] > values[b]; });
  order.resize(static_cast<std::size_t>(count));
  return order;
}

}  // namespace

void route(const RouteArgs& args) {
  const std::int64_t experts = args.logits_LE.cols;
  expects(args.groups > 0 && experts % args.groups == 0, "groups divide the experts");
  const std::int64_t group_size = experts / args.groups;
  expects(args.top_groups >= 1 && args.top_groups <= args.groups, "top_groups of groups stay");
  expects(args.top_k >= 1 && args.top_k <= args.top_groups * group_size, "the groups that stay hold top_k experts");
  std::vector<double> bias_E(static_cast<std::size_t>(experts));
  if (!args.bias_1E.empty()) read_doubles(args.bias_1E.data, args.bias_1E.dtype, experts, bias_E.data());
  for (std::int64_t l = 0; l < args.logits_LE.rows; ++l) {
    const std::vector<double> scores_E = scores_of(double_row(args.logits_LE, l), experts, args.score);
    std::vector<double> choice_E(static_cast<std::size_t>(experts));
    for (std::int64_t e = 0; e < experts; ++e) choice_E[e] = scores_E[e] + bias_E[e];

    std::vector<double> group_scores;
    for (int g = 0; g < args.groups; ++g) {
      const std::span<const double> all(choice_E);
      group_scores.push_back(group_score(all.subspan(g * group_size, group_size), args.group_score));
    }
    std::vector<double> kept_E(choice_E.size(), kLeftOut);
    for (const std::int32_t g : largest(group_scores, args.top_groups)) {
      std::copy_n(choice_E.begin() + g * group_size, group_size, kept_E.begin() + g * group_size);
    }

    const std::vector<std::int32_t> winners = largest(kept_E, args.top_k);
    double sum = 1e-20;
    for (const std::int32_t e : winners) sum += scores_E[e];
    double* weights_k = double_row(args.weights_Lk, l);
    for (int k = 0; k < args.top_k; ++k) {
      args.ids_Lk(l, k) = winners[k];
      weights_k[k] = scores_E[winners[k]] / (args.normalise ? sum : 1) * args.scale;
    }
  }
}

}  // namespace latte::reference
