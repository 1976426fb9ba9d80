#pragma once

#include <string>
#include <vector>

#include "model/config.h"

namespace latte {

/// Rotation speeds of one model: pair i of a row at position t turns by t * inv_freq[i], and cos and sin are multiplied
/// by `magnitude`. The pairing (interleaved or halves) is RopeConfig's.
struct RopeTable {
  std::vector<double> inv_freq;  ///< [width / 2]
  double magnitude = 1;
};

/// Plain RoPE; YaRN's ramp between extended and unchanged speeds; Llama 3's three bands; or one list of LongRoPE, which
/// `context`, the most positions of the sequence, decides for its whole life, so that no row depends on how a text was
/// cut into steps. `width` is p, or the whole head of GQA; even.
RopeTable rope_table(const RopeConfig& rope, int width, int context = 0);

/// Whether a sequence of `context` positions takes LongRoPE's list for long texts.
bool takes_long_list(const LongRopeConfig& longrope, int context);

/// The scaling in a few words; of LongRoPE, the list that sequences of `context` positions take and why.
std::string describe_rope(const RopeConfig& rope, int context);

/// Factor of q.k before the softmax: key width^-0.5; with latent attention times YaRN's m(factor, mscale_all_dim)^2
/// when that is set.
double softmax_scale(const ModelConfig& config);

}  // namespace latte
