#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "plan/kv_chunk.h"

namespace latte {

/// Keys of the shortest leaf: a leaf's result is written and folded once, which shorter ones would spend their time on.
inline constexpr int kShortestLeaf = 256;
/// Leaves of a whole length class: enough to keep many threads busy with the rows of one vector.
inline constexpr int kMostLeaves = 64;

/// The class of lengths that share one division of the keys: the next power of two, from 16384 up.
constexpr std::int64_t length_class(std::int64_t visible_rows) {
  return static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(visible_rows, kShortestLeaf * kMostLeaves))));
}

/// Keys in one leaf of the merge tree for a row that sees `visible_rows` keys: a function of its length class alone, so
/// that the same row meets the same tree whatever runs beside it.
constexpr int leaf_length(std::int64_t visible_rows) {
  return static_cast<int>(length_class(visible_rows) / kMostLeaves);
}

/// A run of a step's queries that share a length class.
struct QueryRun {
  int first_query = 0;
  int query_count = 0;
  friend constexpr bool operator==(const QueryRun&, const QueryRun&) = default;
};

/// Cuts queries 0 .. L-1, of which query i sees first_visible + i keys, where the class changes. Appends to `runs`.
void split_by_length_class(int first_visible, int queries, std::vector<QueryRun>& runs);

/// The leaves that cover keys [0, visible_rows) in chunks of `leaf` keys. Leaves get a slot each while that takes at
/// most `max_slots`; else the kMergeFanIn leaves of a group fold into one slot, which gives the same bits with an
/// eighth of the partials. Appends to `chunks` and returns the number of slots used.
int split_keys(int visible_rows, int leaf, int sequence, int max_slots, std::vector<KvChunk>& chunks);

}  // namespace latte
