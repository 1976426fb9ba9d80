#include "support/attention_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "support/device_memory.h"
#include "support/random_rows.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

constexpr std::uint64_t kKeySeed = 81;
constexpr std::uint64_t kValueSeed = 82;
constexpr std::uint64_t kQuerySeed = 83;

/// Spreads scores over a few powers of two, so that neither a flat average nor a single key decides.
double scale_log2_of(const AttendSpec& spec) { return 8 / std::sqrt(static_cast<double>(spec.key_width)); }

/// How a Q8 key row is cut.
CodedPiece piece_of(const AttendSpec& spec) {
  const int past_values = spec.values_in_keys ? spec.key_width - spec.value_width : 0;
  const int exact = spec.exact >= 0 ? spec.exact : past_values;
  return {spec.key_width - exact, exact};
}

struct AttendState {
  std::vector<DeviceRows> keys, values;
  std::vector<DeviceMatrix> queries;
  std::vector<AttendSequence> sequences;
  std::vector<KvChunk> chunks;
  std::vector<MergeRange> ranges;
  DeviceBuffer o, log2_sums;
  Partials partials;
  DeviceMatrix out;
  int slots = 0;
};

/// Keys [first_key_pos, length) of one sequence; all other rows of its pages stay NaN.
void add_keys(Backend& backend, const AttendSpec& spec, const SequenceSpec& sequence, AttendState& state) {
  const int rows = std::max(sequence.length() - sequence.first_key_pos, 0);
  DeviceRows::Shape shape{.dtype = spec.keys,
                          .lanes = spec.values_behind_keys ? 2 * spec.lanes : spec.lanes,
                          .width = spec.key_width,
                          .rows = rows,
                          .page_rows = spec.page_rows,
                          .placement = mix(spec.placement, sequence.identity),
                          .piece = piece_of(spec)};
  DeviceRows& keys = state.keys.emplace_back(backend, shape);
  shape.width = spec.value_width;
  shape.piece = {spec.value_width, 0};
  DeviceRows& values = state.values.emplace_back();
  if (!spec.values_in_keys && !spec.values_behind_keys) values = DeviceRows(backend, shape);
  for (int t = 0; t < rows; ++t) {
    for (int lane = 0; lane < spec.lanes; ++lane) {
      const std::int64_t number = static_cast<std::int64_t>(sequence.first_key_pos + t) * spec.lanes + lane;
      keys.write_row(t, lane, random_row(mix(kKeySeed, sequence.identity), number, spec.key_width));
      if (spec.values_in_keys) continue;
      const std::vector<double> value = random_row(mix(kValueSeed, sequence.identity), number, spec.value_width);
      if (spec.values_behind_keys) {
        keys.write_row(t, spec.lanes + lane, value);
      } else {
        values.write_row(t, lane, value);
      }
    }
  }
}

void add_sequence(Backend& backend, const AttendSpec& spec, const SequenceSpec& sequence, AttendState& state) {
  const int rows = sequence.queries * spec.rows_per_query;
  const bool lane_major = spec.layout == QueryLayout::kLaneMajor;
  const DType activation = backend.info().activation;
  DeviceMatrix& queries = state.queries.emplace_back(backend, activation, lane_major ? rows * spec.lanes : rows,
                                                     lane_major ? spec.key_width : spec.key_width * spec.lanes);
  for (int w = 0; w < rows; ++w) {
    std::vector<double> all_lanes;
    for (int lane = 0; lane < spec.lanes; ++lane) {
      const std::int64_t position = sequence.first_query_pos + w / spec.rows_per_query;
      const std::int64_t number = (position * spec.rows_per_query + w % spec.rows_per_query) * spec.lanes + lane;
      const std::vector<double> q = random_row(mix(kQuerySeed, sequence.identity), number, spec.key_width);
      if (lane_major) queries.write_row(lane * rows + w, q);
      all_lanes.insert(all_lanes.end(), q.begin(), q.end());
    }
    if (!lane_major) queries.write_row(w, all_lanes);
  }
  const MatRef q = queries.ref();
  const int key_rows = std::max(sequence.length() - sequence.first_key_pos, 0);
  KeyRows keys = state.keys.back().ref(key_rows);
  keys.expanded = spec.expanded;
  KeyRows values = keys;
  if (spec.values_behind_keys) {
    values.first_col = spec.lanes * keys.lane_stride;
  } else if (!spec.values_in_keys) {
    values = state.values.back().ref(key_rows);
    values.expanded = spec.expanded;
  }
  const std::int64_t first_row =
      state.ranges.empty() ? 0 : state.ranges.back().first_row + state.ranges.back().row_count;
  state.sequences.push_back({.q_WK = {q.data, q.dtype, rows, spec.key_width, q.row_stride},
                             .q_lane_stride = lane_major ? rows * q.row_stride : spec.key_width,
                             .keys = keys,
                             .values = values,
                             .first_key_pos = sequence.first_key_pos,
                             .first_query_pos = sequence.first_query_pos,
                             .first_row = first_row});

  const int first_slot = spec.shared_slots ? 0 : state.slots;
  int leaves = 0;
  for (int begin = sequence.first_key_pos; begin < sequence.length(); ++leaves) {
    const int end = std::min((begin / spec.leaf + 1) * spec.leaf, sequence.length());
    state.chunks.push_back({.sequence = static_cast<int>(state.sequences.size()) - 1,
                            .begin = begin,
                            .end = end,
                            .slot = first_slot + leaves / spec.leaves_per_slot,
                            .opens_slot = leaves % spec.leaves_per_slot == 0});
    begin = end;
  }
  const int slots = (leaves + spec.leaves_per_slot - 1) / spec.leaves_per_slot;
  state.ranges.push_back({.first_slot = first_slot, .slot_count = slots, .first_row = first_row, .row_count = rows});
  state.slots = std::max(state.slots, first_slot + slots);
}

RowValues result_of(const AttendSpec& spec, const AttendState& state) {
  RowValues by_query;
  for (std::int64_t row = 0; row < state.out.ref().rows; ++row) {
    if (row % spec.rows_per_query == 0) by_query.emplace_back();
    const std::vector<double> o = state.out.row(row);
    by_query.back().insert(by_query.back().end(), o.begin(), o.end());
  }
  return by_query;
}

}  // namespace

PreparedOperation prepare_attend(Backend& backend, const AttendSpec& spec) {
  auto state = std::make_shared<AttendState>();
  state->keys.reserve(spec.sequences.size());
  state->values.reserve(spec.sequences.size());
  for (const SequenceSpec& sequence : spec.sequences) {
    add_keys(backend, spec, sequence, *state);
    add_sequence(backend, spec, sequence, *state);
  }
  const std::int64_t rows = state->ranges.empty() ? 0 : state->ranges.back().first_row + state->ranges.back().row_count;
  const DType activation = backend.info().activation;
  const std::size_t states = static_cast<std::size_t>(std::max(state->slots, 1)) * spec.lanes * rows;
  state->o = poisoned_buffer(backend, states * spec.value_width * dtype_bytes(activation));
  state->log2_sums = poisoned_buffer(backend, states * dtype_bytes(activation));
  state->partials = {.o = state->o.data(),
                     .log2_sums = state->log2_sums.data(),
                     .dtype = activation,
                     .slots = state->slots,
                     .lanes = spec.lanes,
                     .rows = rows,
                     .width = spec.value_width};
  state->out = DeviceMatrix(backend, activation, rows, spec.lanes * spec.value_width);
  const bool decode = std::all_of(spec.sequences.begin(), spec.sequences.end(),
                                  [](const SequenceSpec& s) { return s.queries <= kMaxDecodeRows; });
  return {[=, &backend] {
            backend.attend_partial({.step_class = decode ? StepClass::kDecode : StepClass::kPrompt,
                                    .sequences = state->sequences,
                                    .lanes = spec.lanes,
                                    .rows_per_query = spec.rows_per_query,
                                    .key_width = spec.key_width,
                                    .value_width = spec.value_width,
                                    .scale_log2 = scale_log2_of(spec),
                                    .chunks = state->chunks,
                                    .partials = state->partials});
            backend.merge_partials({state->partials, state->ranges, state->out.ref(), spec.value_width});
          },
          [=] { return result_of(spec, *state); }, [=] { return state->out.poison_intact(); }};
}

RowValues attend(Backend& backend, const AttendSpec& spec) {
  const PreparedOperation prepared = prepare_attend(backend, spec);
  prepared.run();
  expects(backend.synchronize().ok(), "the device has not failed");
  expects(prepared.poison_intact(), "an operation writes its outputs and nothing else");
  return prepared.result();
}

OperationCase attend_case(const std::string& name, const AttendSpec& spec) {
  int queries = 0;
  for (const SequenceSpec& sequence : spec.sequences) queries += sequence.queries;
  // The rows named must be neighbours within a sequence: they become a shorter run of its queries.
  const auto prepare = [spec](Backend& backend, std::span<const int> rows) {
    AttendSpec some = spec;
    some.sequences.clear();
    int first = 0;
    for (const SequenceSpec& sequence : spec.sequences) {
      std::vector<int> own;
      for (const int row : rows) {
        if (row >= first && row < first + sequence.queries) own.push_back(row - first);
      }
      first += sequence.queries;
      const bool whole = std::cmp_equal(own.size(), sequence.queries);
      if (own.empty() && !whole) continue;
      SequenceSpec& run = some.sequences.emplace_back(sequence);
      if (whole) continue;
      expects(std::cmp_equal(own.size(), own.back() - own.front() + 1), "rows of an attention case are neighbours");
      run.first_query_pos += own.front();
      run.queries = static_cast<int>(own.size());
      run.cached_rows = -1;
    }
    return prepare_attend(backend, some);
  };
  return {"attend/" + name, queries, true, prepare,
          [keys = spec.expanded ? DType::kBf16 : spec.keys](const Rounding& rounding) {
            return attention_tolerance(keys, rounding);
          }};
}

std::vector<OperationCase> attention_cases() {
  std::vector<OperationCase> cases;
  const auto absorbed = [](int heads, int r, int p, DType keys) {
    return AttendSpec{.rows_per_query = heads, .key_width = r + p, .value_width = r, .keys = keys};
  };
  for (const DType keys : {DType::kF32, DType::kBf16, DType::kF16, DType::kQ8}) {
    const std::string type = type_word(keys);
    const auto add = [&](const std::string& name, AttendSpec spec, std::vector<SequenceSpec> sequences) {
      spec.sequences = std::move(sequences);
      cases.push_back(attend_case(fmt::format("{}_{}", type, name), spec));
    };
    // Every row count of a decode step, and beyond, over a causal tail that ends inside a chunk.
    for (int queries = 1; queries <= 17; ++queries) {
      add(fmt::format("absorbed_H8_L{}", queries), absorbed(8, 32, 16, keys), {{queries, 150, queries}});
    }
    for (const int heads : {3, 16, 20, 40, 128}) {
      for (const int queries : {1, 2, 5}) {
        add(fmt::format("absorbed_H{}_L{}", heads, queries), absorbed(heads, 128, 32, keys), {{heads, 300, queries}});
      }
    }
    for (const int length : {1, 2, 63, 64, 65, 127, 128, 129, 191, 192, 193, 1024, 2047}) {
      add(fmt::format("absorbed_T{}", length), absorbed(8, 128, 32, keys), {{length, length - 1, 1}});
    }
    add("cold_L17_T17", absorbed(3, 32, 16, keys), {{1, 0, 17}});
    add("cold_L300_T300", absorbed(8, 32, 16, keys), {{1, 0, 300}});
    add("r256_p32_H40_L3", absorbed(40, 256, 32, keys), {{2, 509, 3}});
    add("r512_p64_H16_L4", absorbed(16, 512, 64, keys), {{3, 1021, 4}});
    add("r64_p0_H20_L2", absorbed(20, 64, 0, keys), {{4, 200, 2}});
    add("r200_p32_H16_L3", absorbed(16, 200, 32, keys), {{4, 140, 3}});
    add("r77_p6_H5_L17", absorbed(5, 77, 6, keys), {{4, 70, 17}});

    // Leaves as long as a device takes keys at a time, and longer: rows of a step end on both sides of such a border.
    AttendSpec long_leaf = absorbed(20, 128, 32, keys);
    long_leaf.leaf = 256;
    for (const int length : {255, 256, 257, 512}) {
      add(fmt::format("leaf256_T{}_L2", length), long_leaf, {{length, length - 2, 2}});
    }
    long_leaf.leaf = 512;
    for (const int length : {258, 514, 1000}) {
      add(fmt::format("leaf512_T{}_L4", length), long_leaf, {{length, length - 4, 4}});
    }

    AttendSpec narrow = absorbed(5, 40, 8, keys);
    narrow.value_width = 24;
    narrow.exact = 8;
    add("values_narrower_than_latent", narrow, {{5, 130, 3}});

    AttendSpec batch = absorbed(8, 128, 32, keys);
    const std::vector<SequenceSpec> ragged{{1, 0, 1}, {2, 700, 2}, {3, 0, 0}, {4, 63, 5}, {5, 64, 1}, {6, 1299, 16}};
    add("batch_ragged", batch, ragged);
    batch.shared_slots = false;
    add("batch_own_slots", batch, ragged);
    batch.leaves_per_slot = 8;
    batch.leaf = 64;
    add("batch_folded_slots", batch, ragged);

    AttendSpec folded = absorbed(8, 32, 16, keys);
    folded.leaf = 64;
    for (const int leaves : {1, 2, 3, 8, 100}) {
      folded.leaves_per_slot = leaves;
      add(fmt::format("folded_{}_to_a_slot", leaves), folded, {{6, 2300, 4}});
    }
    folded.leaves_per_slot = 1;
    folded.leaf = 37;
    add("odd_chunks", folded, {{6, 700, 4}});
    folded.page_rows = 0;
    add("one_page", folded, {{6, 700, 4}});

    // Keys that no query may see yet: the last chunks are masked wholly, then in part.
    AttendSpec masked = absorbed(8, 32, 16, keys);
    masked.leaf = 64;
    add("masked_tail", masked, {{7, 100, 3, 400}});
    add("masked_first_key", masked, {{7, 10, 3, 400, 200}});
    add("keys_from_the_middle", masked, {{7, 260, 5, -1, 130}});
    add("keys_from_a_query", masked, {{7, 128, 16, 150, 133}});

    for (const int queries : {1, 2, 17, 70}) {
      AttendSpec materialised{.lanes = 8,
                              .key_width = 96,
                              .value_width = 64,
                              .values_in_keys = false,
                              .keys = keys,
                              .layout = QueryLayout::kRowMajor,
                              .page_rows = 0};
      add(fmt::format("materialised_H8_L{}", queries), materialised, {{8, 150, queries}});
      if (keys != DType::kF32) continue;
      materialised.expanded = true;
      add(fmt::format("expanded_H8_L{}", queries), materialised, {{8, 150, queries}});
    }
    AttendSpec tall{.lanes = 20,
                    .key_width = 256,
                    .value_width = 256,
                    .values_in_keys = false,
                    .keys = keys,
                    .layout = QueryLayout::kRowMajor,
                    .page_rows = 0};
    add("materialised_H20_n192", tall, {{9, 60, 9}});
    AttendSpec odd{.lanes = 3,
                   .key_width = 19,
                   .value_width = 13,
                   .values_in_keys = false,
                   .keys = keys,
                   .layout = QueryLayout::kRowMajor,
                   .page_rows = 128};
    add("materialised_odd_widths", odd, {{9, 250, 6}, {10, 0, 3}});
    odd.expanded = true;
    if (keys == DType::kF32) add("expanded_odd_widths", odd, {{9, 250, 6}, {10, 0, 3}});
    AttendSpec grouped{
        .lanes = 4, .rows_per_query = 4, .key_width = 64, .value_width = 64, .values_in_keys = false, .keys = keys};
    add("grouped_4x4", grouped, {{11, 333, 3}});
    add("grouped_4x4_batch", grouped, {{11, 200, 1}, {12, 0, 2}, {13, 127, 16}});
    AttendSpec cached_gqa{.lanes = 2,
                          .rows_per_query = 3,
                          .key_width = 20,
                          .value_width = 20,
                          .values_in_keys = false,
                          .values_behind_keys = true,
                          .keys = keys};
    add("values_behind_keys", cached_gqa, {{14, 190, 4}, {15, 0, 17}});
  }
  return cases;
}

}  // namespace latte::test
