#include <numbers>

#include "attention/forms.h"

namespace latte {

void attend_materialised(const MlaStepArgs& a) {
  const MlaGeometry& g = a.plan.geometry;
  const int queries = a.plan.new_rows;
  void* const key_page = a.buffers.keys.data;
  void* const value_page = a.buffers.values.data;
  const MatRef q_heads = a.buffers.q_LHk.split_cols(g.heads);
  const Partials partials{.o = a.buffers.partial_o.data,
                          .log2_sums = a.buffers.partial_sums.data,
                          .dtype = a.buffers.partial_o.dtype,
                          .slots = 1,
                          .lanes = g.heads,
                          .rows = queries,
                          .width = g.v};
  for (const KvChunk& chunk : a.plan.chunks) {
    const int rows = chunk.end - chunk.begin;
    const auto lanes_of = [&](const MatRef& memory, void* const* page) {
      return workspace_rows(page, memory.dtype, rows, memory.cols, memory.rows / g.heads);
    };
    const KeyRows keys = lanes_of(a.buffers.keys, &key_page);
    const KeyRows values = lanes_of(a.buffers.values, &value_page);
    a.backend.expand_latent({a.latent, chunk.begin, chunk.end, a.weights.w_uk, a.weights.w_uv, g.p, keys, values});

    // A lane's queries are every H-th row of the packed [L * H, n + p] matrix.
    const AttendSequence sequence{
        .q_WK = {q_heads.data, q_heads.dtype, queries, q_heads.cols, q_heads.row_stride * g.heads},
        .q_lane_stride = q_heads.row_stride,
        .keys = keys,
        .values = values,
        .first_key_pos = chunk.begin,
        .first_query_pos = a.plan.rows_before};
    a.backend.attend_partial({.step_class = a.plan.step_class,
                              .sequences = {&sequence, 1},
                              .lanes = g.heads,
                              .rows_per_query = 1,
                              .key_width = g.key_width(),
                              .value_width = g.v,
                              .scale_log2 = a.softmax_scale * std::numbers::log2e,
                              .chunks = {&chunk, 1},
                              .partials = partials});
  }
  const MergeRange range{.first_slot = 0, .slot_count = 1, .first_row = 0, .row_count = queries};
  a.backend.merge_partials({partials, {&range, 1}, a.buffers.out_LHv, g.v});
}

}  // namespace latte
