#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/timeline.h"

namespace latte {

/// The tokens before a position, as penalties count them: the last N of prompt and text, and everything that was
/// generated. A push or a pop costs the same at any length.
class TokenHistory {
 public:
  using Counts = std::unordered_map<TokenId, int>;

  /// `last_n`: how many tokens the window of `recent` holds; 0: none, -1: all.
  TokenHistory(std::span<const TokenId> prompt, int last_n);

  /// The next generated token, or one that is being tried.
  void push(TokenId token);
  /// Takes back the newest push, exactly.
  void pop();

  /// Of each token that is among the last N, how often it is.
  const Counts& recent() const { return recent_; }
  /// Of each token that was pushed, how often it was.
  const Counts& generated() const { return generated_; }

 private:
  std::vector<TokenId> tokens_;  // of the prompt what the window can reach, then what was pushed
  std::size_t from_prompt_;      // of tokens_
  std::size_t window_;
  Counts recent_;
  Counts generated_;
};

}  // namespace latte
