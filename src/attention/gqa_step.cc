#include "attention/gqa_step.h"

#include <array>
#include <numbers>

namespace latte {
namespace {

// q, k and v of the new rows.
void project(const GqaStepArgs& a) {
  const std::array products = {Projection{a.weights.q_proj, a.buffers.q_LHd, false, a.weights.q_bias},
                               Projection{a.weights.k_proj, a.buffers.k_Lgd, false, a.weights.k_bias},
                               Projection{a.weights.v_proj, a.buffers.v_Lgd, false, a.weights.v_bias}};
  a.backend.matmul({a.plan.step_class, a.x_LD, products});
}

// Norms and rotates every query head and every key head.
void norm_and_rotate(const GqaStepArgs& a) {
  const GqaGeometry& g = a.plan.gqa;
  const MatRef q_heads = a.buffers.q_LHd.split_cols(g.heads);
  const MatRef k_heads = a.buffers.k_Lgd.split_cols(g.kv_heads);
  if (!a.weights.q_norm.empty()) a.backend.rms_norm({q_heads, a.weights.q_norm, a.head_norm_eps, q_heads});
  if (!a.weights.k_norm.empty()) a.backend.rms_norm({k_heads, a.weights.k_norm, a.head_norm_eps, k_heads});
  a.backend.rope({q_heads, g.heads, a.cos_Lp, a.sin_Lp, a.rope_style});
  a.backend.rope({k_heads, g.kv_heads, a.cos_Lp, a.sin_Lp, a.rope_style});
}

void append(const GqaStepArgs& a) {
  a.backend.store_rows({a.buffers.k_Lgd, a.cached, a.plan.rows_before, 0});
  a.backend.store_rows({a.buffers.v_Lgd, a.cached, a.plan.rows_before, a.plan.gqa.kv_width()});
}

// Rows [queries, H * d] seen as lanes of packed rows, query after query with the heads of the lane's group.
struct Lanes {
  MatRef lane_0;                 // [queries * heads of a group, d]
  std::int64_t lane_stride = 0;  // elements
};

// One query, or one group, lies packed already; more of both go through `memory`.
bool lies_packed(const GqaGeometry& g, std::int64_t queries) { return queries == 1 || g.kv_heads == 1; }

Lanes lanes_of(const GqaGeometry& g, const MatRef& rows, const MatRef& memory) {
  const std::int64_t packed_rows = rows.rows * g.group_heads();
  const bool packed = lies_packed(g, rows.rows);
  const std::int64_t between = (packed ? g.group_heads() : packed_rows) * std::int64_t{g.head_dim};
  return {{packed ? rows.data : memory.data, rows.dtype, packed_rows, g.head_dim, g.head_dim}, between};
}

// Copies every group's columns of `rows` to its lane, or back.
void copy_groups(const GqaStepArgs& a, const MatRef& rows, const Lanes& lanes, bool to_lanes) {
  const GqaGeometry& g = a.plan.gqa;
  if (lies_packed(g, rows.rows)) return;
  const std::int64_t width = std::int64_t{g.group_heads()} * g.head_dim;
  for (int group = 0; group < g.kv_heads; ++group) {
    const MatRef flat{lanes.lane_0.data, rows.dtype, 1, g.kv_heads * lanes.lane_stride, g.kv_heads * lanes.lane_stride};
    const MatRef lane{flat.at(0, group * lanes.lane_stride), rows.dtype, rows.rows, width, width};
    const MatRef columns = rows.cols_from(group * width, width);
    a.backend.copy(to_lanes ? columns : lane, to_lanes ? lane : columns);
  }
}

void attend(const GqaStepArgs& a) {
  const GqaGeometry& g = a.plan.gqa;
  KeyRows keys = a.cached;
  keys.lane_stride = g.head_dim;
  KeyRows values = keys;
  values.first_col = g.kv_width();
  for (const AttendCall& call : a.plan.calls) {
    const MatRef q_rows = a.buffers.q_LHd.rows_from(call.queries.first_query, call.queries.query_count);
    const MatRef out_rows = a.buffers.out_LHd.rows_from(call.queries.first_query, call.queries.query_count);
    const Lanes q = lanes_of(g, q_rows, a.buffers.packed_q_GWd);
    const Lanes out = lanes_of(g, out_rows, a.buffers.packed_out_GWd);
    copy_groups(a, q_rows, q, true);

    const AttendSequence sequence{.q_WK = q.lane_0,
                                  .q_lane_stride = q.lane_stride,
                                  .keys = keys,
                                  .values = values,
                                  .first_key_pos = 0,
                                  .first_query_pos = a.plan.rows_before + call.queries.first_query};
    const Partials partials{.o = a.buffers.partial_o.data,
                            .log2_sums = a.buffers.partial_sums.data,
                            .dtype = a.buffers.partial_o.dtype,
                            .slots = call.slots,
                            .lanes = g.kv_heads,
                            .rows = q.lane_0.rows,
                            .width = g.head_dim};
    a.backend.attend_partial({.step_class = a.plan.step_class,
                              .sequences = {&sequence, 1},
                              .lanes = g.kv_heads,
                              .rows_per_query = g.group_heads(),
                              .key_width = g.head_dim,
                              .value_width = g.head_dim,
                              .scale_log2 = a.softmax_scale * std::numbers::log2e,
                              .chunks = std::span(a.plan.chunks).subspan(call.first_chunk, call.chunk_count),
                              .partials = partials});
    const MergeRange range{.first_slot = 0, .slot_count = call.slots, .first_row = 0, .row_count = q.lane_0.rows};
    a.backend.merge_partials({partials, {&range, 1}, out.lane_0, out.lane_stride});
    copy_groups(a, out_rows, out, false);
  }
}

}  // namespace

void gqa_step(const GqaStepArgs& args) {
  project(args);
  norm_and_rotate(args);
  append(args);
  attend(args);
  const std::array out = {Projection{args.weights.o_proj, args.residual_LD, true, args.weights.o_bias}};
  args.backend.matmul({args.plan.step_class, args.buffers.out_LHd, out});
}

}  // namespace latte
