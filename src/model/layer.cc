#include "model/layer.h"

#include "attention/gqa_step.h"
#include "attention/mla_step.h"

namespace latte {
namespace {

void attention(const LayerArgs& a) {
  const ModelConfig& config = a.model.config;
  const LayerBuffers& b = a.buffers;
  const RopeStyle style = config.rope.interleave ? RopeStyle::kInterleaved : RopeStyle::kHalfSplit;
  if (config.attention == AttentionKind::kGqa) {
    gqa_step({.backend = a.backend,
              .plan = a.plan,
              .weights = a.weights.gqa,
              .head_norm_eps = config.rms_norm_eps,
              .softmax_scale = a.model.softmax_scale,
              .rope_style = style,
              .cos_Lp = b.cos_Lp,
              .sin_Lp = b.sin_Lp,
              .cached = a.cached,
              .buffers = b.attention,
              .x_LD = b.normed_LD,
              .residual_LD = b.x_LD});
    return;
  }
  mla_step({.backend = a.backend,
            .plan = a.plan,
            .weights = a.weights.attention,
            .latent_norm_eps = config.latent_norm_eps,
            .softmax_scale = a.model.softmax_scale,
            .rope_style = style,
            .cos_Lp = b.cos_Lp,
            .sin_Lp = b.sin_Lp,
            .latent = a.cached,
            .buffers = b.attention,
            .x_LD = b.normed_LD,
            .residual_LD = b.x_LD});
}

}  // namespace

void layer(const LayerArgs& a) {
  const ModelConfig& config = a.model.config;
  const LayerBuffers& b = a.buffers;
  a.backend.rms_norm({b.x_LD, a.weights.input_norm, config.rms_norm_eps, b.normed_LD});
  attention(a);
  a.backend.rms_norm({b.x_LD, a.weights.post_attention_norm, config.rms_norm_eps, b.normed_LD});
  feed_forward(a);
}

}  // namespace latte
