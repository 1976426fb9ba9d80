#include "model/layer.h"

#include "attention/mla_step.h"

namespace latte {

void layer(const LayerArgs& a) {
  const ModelConfig& config = a.model.config;
  const LayerBuffers& b = a.buffers;
  a.backend.rms_norm({b.x_LD, a.weights.input_norm, config.rms_norm_eps, b.normed_LD});
  mla_step({.backend = a.backend,
            .plan = a.plan,
            .weights = a.weights.attention,
            .latent_norm_eps = config.latent_norm_eps,
            .softmax_scale = a.model.softmax_scale,
            .rope_style = config.rope.interleave ? RopeStyle::kInterleaved : RopeStyle::kHalfSplit,
            .cos_Lp = b.cos_Lp,
            .sin_Lp = b.sin_Lp,
            .latent = a.latent,
            .buffers = b.attention,
            .x_LD = b.normed_LD,
            .residual_LD = b.x_LD});
  a.backend.rms_norm({b.x_LD, a.weights.post_attention_norm, config.rms_norm_eps, b.normed_LD});
  feed_forward(a);
}

}  // namespace latte
