#include "attention/mla_step.h"

#include <array>

#include "attention/forms.h"

namespace latte {
namespace {

// q [L, H * (n + p)] from x, through the low-rank path where the model has one, and the new latent rows' raw [c |
// k_pe].
void project(const MlaStepArgs& a) {
  const StepClass step_class = a.plan.step_class;
  if (a.weights.q_proj.empty()) {
    const std::array down = {Projection{a.weights.q_a, a.buffers.q_latent_Lq, false, a.weights.q_a_bias},
                             Projection{a.weights.kv_a, a.buffers.kv_a_Ll, false, a.weights.kv_a_bias}};
    a.backend.matmul({step_class, a.x_LD, down});
    a.backend.rms_norm({a.buffers.q_latent_Lq, a.weights.q_a_norm, a.latent_norm_eps, a.buffers.q_latent_Lq});
    const std::array up = {Projection{a.weights.q_b, a.buffers.q_LHk}};
    a.backend.matmul({step_class, a.buffers.q_latent_Lq, up});
  } else {
    const std::array both = {Projection{a.weights.q_proj, a.buffers.q_LHk},
                             Projection{a.weights.kv_a, a.buffers.kv_a_Ll, false, a.weights.kv_a_bias}};
    a.backend.matmul({step_class, a.x_LD, both});
  }
}

// Norms c, rotates k_pe and the rope part of every query head.
void norm_and_rotate(const MlaStepArgs& a) {
  const MlaGeometry& g = a.plan.geometry;
  const MatRef c = a.buffers.kv_a_Ll.cols_from(0, g.r);
  a.backend.rms_norm({c, a.weights.kv_a_norm, a.latent_norm_eps, c});
  if (g.p == 0) return;
  a.backend.rope({a.buffers.kv_a_Ll.cols_from(g.r, g.p), 1, a.cos_Lp, a.sin_Lp, a.rope_style});
  const MatRef q_heads = a.buffers.q_LHk.split_cols(g.heads);
  a.backend.rope({q_heads.cols_from(g.n, g.p), g.heads, a.cos_Lp, a.sin_Lp, a.rope_style});
}

void append_latent(const MlaStepArgs& a) { a.backend.store_rows({a.buffers.kv_a_Ll, a.latent, a.plan.rows_before, 0}); }

}  // namespace

void mla_step(const MlaStepArgs& args) {
  project(args);
  norm_and_rotate(args);
  append_latent(args);
  if (args.plan.form == MlaForm::kAbsorbed) {
    attend_absorbed(args);
  } else {
    attend_materialised(args);
  }
  const std::array out = {Projection{args.weights.o_proj, args.residual_LD, true, args.weights.o_bias}};
  args.backend.matmul({args.plan.step_class, args.buffers.out_LHv, out});
}

}  // namespace latte
