#include "model/step_memory.h"

namespace latte {

LayerBuffers LayerBuffers::carve(BufferCarver& carver, const StepPlan& plan, const ModelConfig& config,
                                 DType activation, bool joins) {
  const std::int64_t rows = plan.new_rows;
  LayerBuffers b;
  b.x_LD = carver.take(rows, config.hidden, activation);
  b.normed_LD = carver.take(rows, config.hidden, activation);
  if (joins) b.joined_L2D = carver.take(rows, 2 * std::int64_t{config.hidden}, activation);
  b.cos_Lp = carver.take(rows, config.rope_width() / 2, activation);
  b.sin_Lp = carver.take(rows, config.rope_width() / 2, activation);
  b.attention = AttentionBuffers::carve(carver, plan, config.q_lora_rank, activation);
  if (config.moe.experts > 0) {
    b.router_LE = carver.take(rows, config.moe.experts, activation);
    b.expert_ids_Lk = typed<std::int32_t>(carver.take(rows, config.moe.top_k, DType::kI32));
    b.expert_weights_Lk = carver.take(rows, config.moe.top_k, activation);
  }
  return b;
}

}  // namespace latte
