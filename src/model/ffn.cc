#include <array>

#include "model/layer.h"

namespace latte {
namespace {

RouteArgs route_args(const LayerArgs& a) {
  const MoeConfig& moe = a.model.config.moe;
  const bool sigmoid = moe.scoring == RouterScoring::kSigmoid;
  return {.logits_LE = a.buffers.router_LE,
          .bias_1E = a.weights.ffn.router_bias,
          .score = sigmoid ? RouterScore::kSigmoid : RouterScore::kSoftmax,
          .group_score = moe.group_score,
          .groups = moe.n_group,
          .top_groups = moe.topk_group,
          .top_k = moe.top_k,
          .normalise = moe.norm_topk_prob,
          .scale = moe.scaling,
          .ids_Lk = a.buffers.expert_ids_Lk,
          .weights_Lk = a.buffers.expert_weights_Lk};
}

}  // namespace

void feed_forward(const LayerArgs& a) {
  const LayerBuffers& b = a.buffers;
  const FfnWeights& ffn = a.weights.ffn;
  if (!ffn.is_moe) {
    a.backend.ffn({a.plan.step_class, b.normed_LD, ffn.dense, b.x_LD});
    return;
  }
  const std::array router = {Projection{ffn.router, b.router_LE}};
  a.backend.matmul({a.plan.step_class, b.normed_LD, router});
  a.backend.route(route_args(a));
  const auto ids = b.expert_ids_Lk;
  a.backend.experts({.step_class = a.plan.step_class,
                     .x_LD = b.normed_LD,
                     .experts = ffn.experts,
                     .shared = ffn.shared.gate.empty() ? nullptr : &ffn.shared,
                     .weights_Lk = b.expert_weights_Lk,
                     .ids_Lk = {ids.data, ids.rows, ids.cols, ids.row_stride},
                     .y_LD = b.x_LD});
}

}  // namespace latte
