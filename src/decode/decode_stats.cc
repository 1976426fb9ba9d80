#include "decode/decode_stats.h"

#include <algorithm>

#include "base/contract.h"

namespace latte {

void DecodeStats::count_round(int wanted, int drafts, int yielded, int emitted) {
  expects(0 < emitted && emitted <= yielded && yielded <= drafts + 1 && drafts <= wanted && wanted <= kMaxDrafts,
          "a round emits 1 to drafts + 1 tokens");
  // Of the yielded tokens all but the last are drafts that held; the text may end on one of them.
  const int held = std::min(yielded - 1, emitted);
  const int tested = std::min(emitted, drafts);
  ++rounds;
  ++rounds_per_depth[static_cast<std::size_t>(wanted)];
  emitted_in_rounds += emitted;
  drafted += drafts;
  accepted += held;
  for (int i = 0; i < held; ++i) ++accepted_per_position[i];
  for (int i = 0; i < tested; ++i) ++tested_per_position[i];
}

}  // namespace latte
