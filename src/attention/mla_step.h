#pragma once

#include "attention/attention_buffers.h"
#include "backend/backend.h"
#include "plan/step_plan.h"
#include "weights/model_weights.h"

namespace latte {

/// One layer's attention over one step: everything it reads and where the result goes.
struct MlaStepArgs {
  Backend& backend;
  const StepPlan& plan;
  const MlaWeights& weights;
  double latent_norm_eps = 1e-6;
  double softmax_scale = 1;
  RopeStyle rope_style = RopeStyle::kInterleaved;
  ConstMatRef cos_Lp, sin_Lp;  ///< [L, p / 2] of the step's positions
  KeyRows latent;              ///< this layer's cache with rows_after() rows; the last L are written here
  const AttentionBuffers& buffers;
  ConstMatRef x_LD;  ///< normed input
  MatRef residual_LD;
};

/// residual += o_proj(attention(x)), in the plan's form; appends L latent rows to the cache on the way.
/// Source: DeepSeek-V2, section 2.1; appendix C gives the formulas in this order.
void mla_step(const MlaStepArgs& args);

}  // namespace latte
