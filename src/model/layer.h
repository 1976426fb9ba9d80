#pragma once

#include "backend/backend.h"
#include "model/model.h"
#include "model/step_memory.h"
#include "plan/step_plan.h"

namespace latte {

/// One decoder layer over one step.
struct LayerArgs {
  Backend& backend;
  const Model& model;
  const StepPlan& plan;
  const LayerWeights& weights;
  KeyRows cached;  ///< the layer's cache with the step's rows
  const LayerBuffers& buffers;
};

/// x += attention(norm(x)); x += ffn(norm(x)), in place in buffers.x_LD.
void layer(const LayerArgs& args);

/// The feed-forward half: x += dense block, or routed experts and shared expert, of normed.
void feed_forward(const LayerArgs& args);

}  // namespace latte
