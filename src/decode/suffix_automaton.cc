#include "decode/suffix_automaton.h"

namespace latte {

void SuffixAutomaton::clear() {
  text_.clear();
  states_.assign(1, State{});
  edges_.clear();
  table_.assign(64, -1);
  last_ = 0;
  repeat_ = {};
}

void SuffixAutomaton::append(TokenId token) {
  const auto end = static_cast<std::int32_t>(text_.size());
  text_.push_back(token);
  const std::int32_t current = add_state({.length = states_[last_].length + 1, .seen_end = end});

  std::int32_t state = last_;
  std::int32_t edge = find_edge(state, token);
  while (state >= 0 && edge < 0) {
    add_edge(state, token, current);
    state = states_[state].link;
    if (state >= 0) edge = find_edge(state, token);
  }
  std::int32_t link = 0;
  if (state >= 0) {
    link = edges_[edge].target;
    if (states_[state].length + 1 != states_[link].length) {
      // The longer strings of `link` do not end here, the shorter ones do: they part.
      const std::int32_t whole = link;
      State part = states_[whole];
      part.length = states_[state].length + 1;
      part.first_edge = -1;
      link = add_state(part);
      for (std::int32_t e = states_[whole].first_edge; e >= 0; e = edges_[e].next_of_state) {
        add_edge(link, edges_[e].token, edges_[e].target);
      }
      while (state >= 0 && edges_[edge].target == whole) {
        edges_[edge].target = link;
        state = states_[state].link;
        if (state >= 0) edge = find_edge(state, token);
      }
      states_[whole].link = link;
    }
  }
  states_[current].link = link;
  last_ = current;
  repeat_ = {.length = states_[link].length, .next = states_[link].seen_end + 1};
  states_[link].seen_end = end;
}

std::int32_t SuffixAutomaton::add_state(const State& state) {
  states_.push_back(state);
  return static_cast<std::int32_t>(states_.size() - 1);
}

std::size_t SuffixAutomaton::slot_of(std::int32_t state, TokenId token) const {
  std::uint64_t key =
      static_cast<std::uint64_t>(static_cast<std::uint32_t>(state)) << 32 | static_cast<std::uint32_t>(token);
  key = (key ^ key >> 31) * 0x9E3779B97F4A7C15;  // golden ratio: spreads neighbouring keys over the high bits
  return static_cast<std::size_t>(key ^ key >> 32) & (table_.size() - 1);
}

std::int32_t SuffixAutomaton::find_edge(std::int32_t state, TokenId token) const {
  for (std::size_t slot = slot_of(state, token);; slot = (slot + 1) & (table_.size() - 1)) {
    const std::int32_t edge = table_[slot];
    if (edge < 0 || (edges_[edge].state == state && edges_[edge].token == token)) return edge;
  }
}

void SuffixAutomaton::add_edge(std::int32_t state, TokenId token, std::int32_t target) {
  if (2 * (edges_.size() + 1) > table_.size()) grow_table();
  std::size_t slot = slot_of(state, token);
  while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
  const auto edge = static_cast<std::int32_t>(edges_.size());
  table_[slot] = edge;
  edges_.push_back({.state = state, .token = token, .target = target, .next_of_state = states_[state].first_edge});
  states_[state].first_edge = edge;
}

void SuffixAutomaton::grow_table() {
  table_.assign(table_.size() * 2, -1);
  for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
    std::size_t slot = slot_of(edges_[edge].state, edges_[edge].token);
    while (table_[slot] >= 0) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = static_cast<std::int32_t>(edge);
  }
}

}  // namespace latte
