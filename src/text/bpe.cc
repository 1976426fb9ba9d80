#include "text/bpe.h"

#include <algorithm>
#include <limits>

#include "base/contract.h"

namespace latte {
namespace {

constexpr std::int32_t kMergedAway = -1;  // id of a symbol that its left neighbour has swallowed

// Order of the heap: the candidate that must merge first is on top.
bool merges_later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

}  // namespace

const Bpe::Merge* Bpe::find_merge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::load_symbols(std::string_view bytes, Scratch& scratch) const {
  scratch.symbols.clear();
  bool last_unknown = false;
  for (const char byte : bytes) {
    std::int32_t id = byte_ids[static_cast<unsigned char>(byte)];
    const bool unknown = id < 0;
    if (unknown) {
      if (!unknown_id.has_value() || (fuse_unknown && last_unknown)) continue;
      id = *unknown_id;
    }
    last_unknown = unknown;
    push_symbol(id, scratch);
  }
}

void Bpe::push_symbol(std::int32_t id, Scratch& scratch) {
  const auto index = static_cast<std::int32_t>(scratch.symbols.size());
  if (index > 0) scratch.symbols.back().next = index;
  scratch.symbols.push_back({id, index - 1, -1});
}

void Bpe::push_candidate(std::int32_t left, Scratch& scratch) const {
  const Scratch::Symbol& symbol = scratch.symbols[left];
  if (symbol.next < 0) return;
  const Merge* merge = find_merge(symbol.id, scratch.symbols[symbol.next].id);
  if (merge == nullptr) return;
  scratch.heap.push_back({merge->rank, left, merge->merged});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), merges_later);
}

void Bpe::encode_piece(std::string_view bytes, std::vector<std::int32_t>& ids, Scratch& scratch) const {
  expects(bytes.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "a piece of text is at most 2^31 - 1 bytes");
  load_symbols(bytes, scratch);
  merge(ids, scratch);
}

void Bpe::encode_symbols(std::span<const std::int32_t> symbols, std::vector<std::int32_t>& ids,
                         Scratch& scratch) const {
  expects(symbols.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "a piece of text is at most 2^31 - 1 tokens");
  scratch.symbols.clear();
  for (const std::int32_t id : symbols) push_symbol(id, scratch);
  merge(ids, scratch);
}

void Bpe::merge(std::vector<std::int32_t>& ids, Scratch& scratch) const {
  scratch.heap.clear();
  const auto count = static_cast<std::int32_t>(scratch.symbols.size());
  for (std::int32_t i = 0; i + 1 < count; ++i) push_candidate(i, scratch);

  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), merges_later);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol& left = scratch.symbols[best.left];
    if (left.id == kMergedAway || left.next < 0) continue;
    Scratch::Symbol& right = scratch.symbols[left.next];
    // The neighbours may have changed since the candidate was queued; it holds only if the pair still merges the same
    // way.
    const Merge* merge = find_merge(left.id, right.id);
    if (merge == nullptr || merge->merged != best.merged) continue;
    left.id = best.merged;
    right.id = kMergedAway;
    left.next = right.next;
    if (right.next >= 0) scratch.symbols[right.next].previous = best.left;
    if (left.previous >= 0) push_candidate(left.previous, scratch);
    push_candidate(best.left, scratch);
  }
  for (const Scratch::Symbol& symbol : scratch.symbols) {
    if (symbol.id != kMergedAway) ids.push_back(symbol.id);
  }
}

}  // namespace latte
