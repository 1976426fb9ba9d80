#include "attention/attention_buffers.h"

#include <algorithm>

namespace latte {

AttentionBuffers AttentionBuffers::carve(BufferCarver& carver, const StepPlan& plan, int q_lora_rank,
                                         DType activation) {
  if (plan.form == MlaForm::kGqa) return carve_gqa(carver, plan, activation);
  const MlaGeometry& g = plan.geometry;
  const std::int64_t rows = plan.new_rows;
  const std::int64_t heads = g.heads;
  AttentionBuffers b;
  if (q_lora_rank > 0) b.q_latent_Lq = carver.take(rows, q_lora_rank, activation);
  b.q_LHk = carver.take(rows, heads * g.key_width(), activation);
  b.kv_a_Ll = carver.take(rows, g.latent_width(), activation);
  b.out_LHv = carver.take(rows, heads * g.v, activation);
  const std::int64_t call_rows = plan.max_call_queries() * heads;
  if (plan.form == MlaForm::kAbsorbed) {
    b.q_absorbed_Wl = carver.take(call_rows, g.latent_width(), activation);
    b.context_Wr = carver.take(call_rows, g.r, activation);
  } else {
    const std::int64_t chunk = std::min(kExpandRows, plan.rows_after());
    b.keys = carver.take(heads * chunk, g.key_width(), activation);
    b.values = carver.take(heads * chunk, g.v, activation);
  }
  const int width = plan.form == MlaForm::kAbsorbed ? g.r : g.v;
  b.partial_o = carver.take(plan.max_slots() * call_rows, width, activation);
  b.partial_sums = carver.take(1, plan.max_slots() * call_rows, activation);
  return b;
}

AttentionBuffers AttentionBuffers::carve_gqa(BufferCarver& carver, const StepPlan& plan, DType activation) {
  const GqaGeometry& g = plan.gqa;
  const std::int64_t call_rows = plan.max_call_queries() * std::int64_t{g.heads};
  AttentionBuffers b;
  b.q_LHd = carver.take(plan.new_rows, g.query_width(), activation);
  b.k_Lgd = carver.take(plan.new_rows, g.kv_width(), activation);
  b.v_Lgd = carver.take(plan.new_rows, g.kv_width(), activation);
  b.out_LHd = carver.take(plan.new_rows, g.query_width(), activation);
  b.packed_q_GWd = carver.take(call_rows, g.head_dim, activation);
  b.packed_out_GWd = carver.take(call_rows, g.head_dim, activation);
  b.partial_o = carver.take(plan.max_slots() * call_rows, g.head_dim, activation);
  b.partial_sums = carver.take(1, plan.max_slots() * call_rows, activation);
  return b;
}

}  // namespace latte
