#include "model/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/contract.h"

namespace latte {
namespace {

/// YaRN's m(s, k): grows with the log of the extension.
double yarn_magnitude(double factor, double k) { return factor <= 1 ? 1 : 0.1 * k * std::log(factor) + 1; }

/// The (real-valued) pair index that turns `rotations` times over the original context.
double yarn_bound(const YarnConfig& yarn, double theta, int width, double rotations) {
  return width * std::log(yarn.original_max / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
}

}  // namespace

RopeTable rope_table(const RopeConfig& rope, int width) {
  expects(width >= 0 && width % 2 == 0, "rope rotates pairs");
  RopeTable table;
  for (int i = 0; i < width / 2; ++i) table.inv_freq.push_back(std::pow(rope.theta, -2.0 * i / width));
  if (!rope.yarn) return table;

  const YarnConfig& yarn = *rope.yarn;
  double low = yarn_bound(yarn, rope.theta, width, yarn.beta_fast);
  double high = yarn_bound(yarn, rope.theta, width, yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1.0);
  if (low == high) high += 0.001;  // a step instead of a division by zero
  for (int i = 0; i < width / 2; ++i) {
    const double ramp = std::clamp((i - low) / (high - low), 0.0, 1.0);
    double& inv_freq = table.inv_freq[static_cast<std::size_t>(i)];
    inv_freq = ramp * inv_freq / yarn.factor + (1 - ramp) * inv_freq;
  }
  table.magnitude = yarn.attention_factor.value_or(yarn_magnitude(yarn.factor, yarn.mscale) /
                                                   yarn_magnitude(yarn.factor, yarn.mscale_all_dim));
  return table;
}

double softmax_scale(const ModelConfig& config) {
  const double scale = 1 / std::sqrt(static_cast<double>(config.geometry.key_width()));
  if (!config.rope.yarn || config.rope.yarn->mscale_all_dim == 0) return scale;
  const double magnitude = yarn_magnitude(config.rope.yarn->factor, config.rope.yarn->mscale_all_dim);
  return scale * magnitude * magnitude;
}

}  // namespace latte
