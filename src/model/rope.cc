#include "model/rope.h"

#include <fmt/format.h>

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

void apply_yarn(const YarnConfig& yarn, double theta, int width, RopeTable& table) {
  double low = yarn_bound(yarn, theta, width, yarn.beta_fast);
  double high = yarn_bound(yarn, theta, width, yarn.beta_slow);
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
}

void apply_llama3(const Llama3Config& llama3, RopeTable& table) {
  for (double& inv_freq : table.inv_freq) {
    const double turns = llama3.original_max * inv_freq / (2 * std::numbers::pi);  // over the original context
    const double kept =
        std::clamp((turns - llama3.low_freq_factor) / (llama3.high_freq_factor - llama3.low_freq_factor), 0.0, 1.0);
    inv_freq = (1 - kept) * inv_freq / llama3.factor + kept * inv_freq;
  }
}

void apply_longrope(const LongRopeConfig& longrope, int context, RopeTable& table) {
  const std::vector<double>& factors =
      takes_long_list(longrope, context) ? longrope.long_factor : longrope.short_factor;
  expects(factors.size() == table.inv_freq.size(), "a list of LongRoPE has a factor per pair");
  for (std::size_t i = 0; i < factors.size(); ++i) table.inv_freq[i] /= factors[i];
  table.magnitude = longrope.magnitude;
}

}  // namespace

bool takes_long_list(const LongRopeConfig& longrope, int context) { return context > longrope.original_max; }

RopeTable rope_table(const RopeConfig& rope, int width, int context) {
  expects(width >= 0 && width % 2 == 0, "rope rotates pairs");
  RopeTable table;
  for (int i = 0; i < width / 2; ++i) table.inv_freq.push_back(std::pow(rope.theta, -2.0 * i / width));
  if (rope.yarn) apply_yarn(*rope.yarn, rope.theta, width, table);
  if (rope.llama3) apply_llama3(*rope.llama3, table);
  if (rope.longrope) apply_longrope(*rope.longrope, context, table);
  return table;
}

std::string describe_rope(const RopeConfig& rope, int context) {
  if (rope.yarn) return fmt::format("yarn, factor {} over {}", rope.yarn->factor, rope.yarn->original_max);
  if (rope.llama3) return fmt::format("llama3, factor {} over {}", rope.llama3->factor, rope.llama3->original_max);
  if (!rope.longrope) return "plain";
  const bool takes_long = takes_long_list(*rope.longrope, context);
  return fmt::format("longrope, {} list: context {} is {} {}", takes_long ? "long" : "short", context,
                     takes_long ? "past" : "within", rope.longrope->original_max);
}

double softmax_scale(const ModelConfig& config) {
  if (config.attention == AttentionKind::kGqa) return 1 / std::sqrt(static_cast<double>(config.gqa.head_dim));
  const double scale = 1 / std::sqrt(static_cast<double>(config.geometry.key_width()));
  if (!config.rope.yarn || config.rope.yarn->mscale_all_dim == 0) return scale;
  const double magnitude = yarn_magnitude(config.rope.yarn->factor, config.rope.yarn->mscale_all_dim);
  return scale * magnitude * magnitude;
}

}  // namespace latte
