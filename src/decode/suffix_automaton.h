#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/timeline.h"

namespace latte {

/// The smallest automaton of all substrings of a growing text (Blumer et al. 1985). Appending a token costs amortised
/// constant time; the longest suffix that occurred before is then known without a search. About 40 bytes a token.
class SuffixAutomaton {
 public:
  /// The longest suffix of the text that also ends at an earlier place.
  struct Repeat {
    int length = 0;  ///< tokens of the suffix; 0: its last token is new
    int next = 0;    ///< index of the token that followed the earlier place
  };

  SuffixAutomaton() { clear(); }

  void clear();
  void append(TokenId token);

  std::span<const TokenId> text() const { return text_; }
  Repeat repeat() const { return repeat_; }

 private:
  struct State {
    std::int32_t length = 0;     // of its longest string
    std::int32_t link = -1;      // state of the longest suffix that ends in more places
    std::int32_t seen_end = -1;  // index of the last token of one occurrence: the latest that is known for free
    std::int32_t first_edge = -1;
  };
  struct Edge {
    std::int32_t state = 0;
    TokenId token = 0;
    std::int32_t target = 0;
    std::int32_t next_of_state = -1;
  };

  std::int32_t add_state(const State& state);
  std::int32_t find_edge(std::int32_t state, TokenId token) const;  // -1: none
  void add_edge(std::int32_t state, TokenId token, std::int32_t target);
  std::size_t slot_of(std::int32_t state, TokenId token) const;
  void grow_table();

  std::vector<TokenId> text_;
  std::vector<State> states_;
  std::vector<Edge> edges_;
  std::vector<std::int32_t> table_;  // open addressing over (state, token): index of the edge, -1 free; a power of two
  std::int32_t last_ = 0;
  Repeat repeat_;
};

}  // namespace latte
