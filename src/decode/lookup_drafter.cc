#include "decode/lookup_drafter.h"

#include <algorithm>

#include "base/contract.h"

namespace latte {

Status LookupDrafter::observe(const Observation& /*seen*/) { return {}; }

Status LookupDrafter::rewind_to(int length) {
  expects(length >= 0, "a cache has no negative length");
  certain_ = std::min(certain_, static_cast<std::size_t>(length));
  return {};
}

Result<std::span<const TokenId>> LookupDrafter::draft(const DraftRequest& request) {
  follow(request.tokens);
  drafts_.clear();
  const SuffixAutomaton::Repeat repeat = automaton_.repeat();
  if (repeat.length < options_.min_match) return std::span<const TokenId>{};
  const std::span<const TokenId> text = automaton_.text();
  const int count = std::min(request.max_drafts, repeat.length);
  for (int i = 0; i < count; ++i) {
    // A repeat that overlaps its own end is a period: it goes on with what has just been drafted.
    const std::size_t source = static_cast<std::size_t>(repeat.next + i);
    drafts_.push_back(source < text.size() ? text[source] : drafts_[source - text.size()]);
  }
  return std::span<const TokenId>{drafts_};
}

void LookupDrafter::follow(std::span<const TokenId> tokens) {
  const std::span<const TokenId> text = automaton_.text();
  const std::size_t shared = std::min(text.size(), tokens.size());
  std::size_t same = std::min(certain_, shared);
  while (same < shared && text[same] == tokens[same]) ++same;
  if (same < text.size()) {
    automaton_.clear();
    same = 0;
  }
  for (; same < tokens.size(); ++same) automaton_.append(tokens[same]);
  certain_ = tokens.size();
}

}  // namespace latte
