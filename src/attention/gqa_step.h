#pragma once

#include "attention/attention_buffers.h"
#include "backend/backend.h"
#include "plan/step_plan.h"
#include "weights/model_weights.h"

namespace latte {

/// One layer's grouped-query attention over one step: everything it reads and where the result goes.
struct GqaStepArgs {
  Backend& backend;
  const StepPlan& plan;
  const GqaWeights& weights;
  double head_norm_eps = 1e-6;  ///< of q_norm and k_norm
  double softmax_scale = 1;
  RopeStyle rope_style = RopeStyle::kHalfSplit;
  ConstMatRef cos_Lp, sin_Lp;  ///< [L, d / 2] of the step's positions
  KeyRows cached;  ///< this layer's cache with rows_after() rows, each [keys of G heads | values of G heads];
                   ///< the last L are written here
  const AttentionBuffers& buffers;
  ConstMatRef x_LD;  ///< normed input
  MatRef residual_LD;
};

/// residual += o_proj(attention(x)); appends L rows of rotated keys and of values on the way. The attention core is
/// that of MLA: a lane per key head, in which the query heads that share it are packed, so that a cached row is read
/// once however many rows the step has.
void gqa_step(const GqaStepArgs& args);

}  // namespace latte
