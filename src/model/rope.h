#pragma once

#include <vector>

#include "model/config.h"

namespace latte {

/// Rotation speeds of one model: pair i of a row at position t turns by t * inv_freq[i], and cos and sin are multiplied
/// by `magnitude`. The pairing (interleaved or halves) is RopeConfig's.
struct RopeTable {
  std::vector<double> inv_freq;  ///< [p / 2]
  double magnitude = 1;
};

/// Plain RoPE, or YaRN's ramp between extended and unchanged speeds when `rope.yarn` is set. `width` is p, even.
RopeTable rope_table(const RopeConfig& rope, int width);

/// Factor of q.k before the softmax: (n + p)^-0.5, times YaRN's m(factor, mscale_all_dim)^2 when that is set.
double softmax_scale(const ModelConfig& config);

}  // namespace latte
