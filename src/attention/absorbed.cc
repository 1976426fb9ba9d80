#include <numbers>

#include "attention/forms.h"

namespace latte {
namespace {

// q_absorbed = [W_UK^T q_nope ; q_pe] of the call's queries, packed as rows query * H + head.
void fold_queries(const MlaStepArgs& a, MatRef q_heads, MatRef q_absorbed) {
  const MlaGeometry& g = a.plan.geometry;
  a.backend.head_matmul(
      {a.plan.step_class, q_heads.cols_from(0, g.n), a.weights.w_uk, HeadSum::kRows, q_absorbed.cols_from(0, g.r)});
  if (g.p > 0) a.backend.copy(q_heads.cols_from(g.n, g.p), q_absorbed.cols_from(g.r, g.p));
}

}  // namespace

void attend_absorbed(const MlaStepArgs& a) {
  const MlaGeometry& g = a.plan.geometry;
  const MatRef all_heads = a.buffers.q_LHk.split_cols(g.heads);
  const MatRef out_heads = a.buffers.out_LHv.split_cols(g.heads);
  for (const AttendCall& call : a.plan.calls) {
    const std::int64_t first = std::int64_t{call.queries.first_query} * g.heads;
    const std::int64_t rows = std::int64_t{call.queries.query_count} * g.heads;
    const MatRef q_absorbed = a.buffers.q_absorbed_Wl.rows_from(0, rows);
    const MatRef context = a.buffers.context_Wr.rows_from(0, rows);
    fold_queries(a, all_heads.rows_from(first, rows), q_absorbed);

    const AttendSequence sequence{.q_WK = q_absorbed,
                                  .keys = a.latent,
                                  .values = a.latent,
                                  .first_key_pos = 0,
                                  .first_query_pos = a.plan.rows_before + call.queries.first_query};
    const Partials partials{.o = a.buffers.partial_o.data,
                            .log2_sums = a.buffers.partial_sums.data,
                            .dtype = a.buffers.partial_o.dtype,
                            .slots = call.slots,
                            .lanes = 1,
                            .rows = rows,
                            .width = g.r};
    a.backend.attend_partial({.step_class = a.plan.step_class,
                              .sequences = {&sequence, 1},
                              .lanes = 1,
                              .rows_per_query = g.heads,
                              .key_width = g.latent_width(),
                              .value_width = g.r,
                              .scale_log2 = a.softmax_scale * std::numbers::log2e,
                              .chunks = std::span(a.plan.chunks).subspan(call.first_chunk, call.chunk_count),
                              .partials = partials});
    const MergeRange range{.first_slot = 0, .slot_count = call.slots, .first_row = 0, .row_count = rows};
    a.backend.merge_partials({partials, {&range, 1}, context, 0});
    a.backend.head_matmul(
        {a.plan.step_class, context, a.weights.w_uv, HeadSum::kCols, out_heads.rows_from(first, rows)});
  }
}

}  // namespace latte
