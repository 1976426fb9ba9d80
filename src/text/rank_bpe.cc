#include "text/rank_bpe.h"

#include <algorithm>

#include "text/piece_cache.h"

namespace latte {
namespace {

// Order of the heap: the candidate that must merge first is on top.
constexpr auto kMergesLater = [](const auto& a, const auto& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.begin > b.begin;
};

}  // namespace

std::int32_t RankBpe::rank_of(std::string_view token) const {
  const auto found = ranks_.find(token);
  return found == ranks_.end() ? -1 : found->second;
}

// Queues the merge of the symbol at `begin` with its right neighbour, when their concatenation is a token.
void RankBpe::push_candidate(std::string_view piece, std::int32_t begin, Scratch& scratch) const {
  const std::int32_t middle = scratch.symbols[begin].end;
  if (middle >= static_cast<std::int32_t>(piece.size())) return;
  const std::int32_t end = scratch.symbols[middle].end;
  const std::int32_t rank = rank_of(piece.substr(begin, end - begin));
  if (rank < 0) return;
  scratch.heap.push_back({rank, begin, end});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), kMergesLater);
}

void RankBpe::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids, Scratch& scratch) const {
  if (const std::int32_t whole = rank_of(piece); whole >= 0) {
    ids.push_back(whole);
    return;
  }
  const auto size = static_cast<std::int32_t>(piece.size());
  scratch.symbols.assign(piece.size(), {});
  scratch.heap.clear();
  for (std::int32_t at = 0; at < size; ++at) scratch.symbols[at] = {at + 1, at - 1, rank_of(piece.substr(at, 1))};
  for (std::int32_t at = 0; at < size; ++at) push_candidate(piece, at, scratch);
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), kMergesLater);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol& left = scratch.symbols[best.begin];
    // The neighbours may have changed since the candidate was queued.
    if (left.rank < 0 || left.end >= best.end || scratch.symbols[left.end].end != best.end) continue;
    scratch.symbols[left.end].rank = -1;
    left.end = best.end;
    left.rank = best.rank;
    if (best.end < size) scratch.symbols[best.end].previous = best.begin;
    if (left.previous >= 0) push_candidate(piece, left.previous, scratch);
    push_candidate(piece, best.begin, scratch);
  }
  for (std::int32_t at = 0; at < size; at = scratch.symbols[at].end) ids.push_back(scratch.symbols[at].rank);
}

Status RankBpe::encode(std::string_view text, bool starts_text, std::vector<std::int32_t>& ids) const {
  const auto split = pre_tokenizer.split(text, starts_text);
  if (!split.ok()) return split.error();
  PieceCache cache(ids);
  Scratch scratch;
  for (const TextSpan& span : split->pieces) {
    cache.append(std::string_view(split->text).substr(span.begin, span.size()),
                 [&](std::string_view piece) { encode_piece(piece, ids, scratch); });
  }
  return {};
}

}  // namespace latte
