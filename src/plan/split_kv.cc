#include "plan/split_kv.h"

namespace latte {

void split_by_length_class(int first_visible, int queries, std::vector<QueryRun>& runs) {
  int first = 0;
  while (first < queries) {
    const std::int64_t last_visible = length_class(first_visible + first);
    const int count =
        static_cast<int>(std::min<std::int64_t>(queries - first, last_visible - (first_visible + first) + 1));
    runs.push_back({first, count});
    first += count;
  }
}

int split_keys(int visible_rows, int leaf, int sequence, int max_slots, std::vector<KvChunk>& chunks) {
  const int leaves = (visible_rows + leaf - 1) / leaf;
  const bool by_group = leaves > max_slots;
  for (int i = 0; i < leaves; ++i) {
    chunks.push_back({.sequence = sequence,
                      .begin = i * leaf,
                      .end = std::min((i + 1) * leaf, visible_rows),
                      .slot = by_group ? i / kMergeFanIn : i,
                      .opens_slot = !by_group || i % kMergeFanIn == 0});
  }
  return by_group ? (leaves + kMergeFanIn - 1) / kMergeFanIn : leaves;
}

}  // namespace latte
