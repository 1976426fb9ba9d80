#include "decode/token_history.h"

#include <algorithm>
#include <limits>

#include "base/contract.h"

namespace latte {
namespace {

void add(TokenHistory::Counts& counts, TokenId token) { ++counts[token]; }

void remove(TokenHistory::Counts& counts, TokenId token) {
  const auto found = counts.find(token);
  expects(found != counts.end(), "a token that leaves the history was in it");
  if (--found->second == 0) counts.erase(found);
}

}  // namespace

TokenHistory::TokenHistory(std::span<const TokenId> prompt, int last_n)
    : window_(last_n < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(last_n)) {
  const std::span<const TokenId> reached = prompt.last(std::min(prompt.size(), window_));
  tokens_.assign(reached.begin(), reached.end());
  from_prompt_ = tokens_.size();
  for (const TokenId token : tokens_) add(recent_, token);
}

void TokenHistory::push(TokenId token) {
  tokens_.push_back(token);
  add(generated_, token);
  add(recent_, token);
  if (tokens_.size() > window_) remove(recent_, tokens_[tokens_.size() - 1 - window_]);
}

void TokenHistory::pop() {
  expects(tokens_.size() > from_prompt_, "only what was pushed is taken back");
  if (tokens_.size() > window_) add(recent_, tokens_[tokens_.size() - 1 - window_]);
  remove(recent_, tokens_.back());
  remove(generated_, tokens_.back());
  tokens_.pop_back();
}

}  // namespace latte
