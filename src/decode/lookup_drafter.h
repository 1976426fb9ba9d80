#pragma once

#include <cstddef>
#include <vector>

#include "decode/drafter.h"
#include "decode/suffix_automaton.h"

namespace latte {

struct LookupOptions {
  int min_match = 2;  ///< shorter repeats propose nothing
};

/// Prompt lookup: proposes what followed the longest suffix of prompt and output that occurred before. A repeat of m
/// tokens proposes at most m, so that a chance match risks little and a long copy runs at full depth. Where nothing
/// repeats nothing is proposed and the round is a plain step. Only emitted tokens enter the text: a rejected draft
/// leaves no trace.
class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(LookupOptions options = {}) : options_(options) {}

  std::string_view name() const override { return "lookup"; }
  int default_depth() const override { return 8; }
  Status observe(const Observation& seen) override;
  Result<std::span<const TokenId>> draft(const DraftRequest& request) override;
  Status rewind_to(int length) override;

 private:
  void follow(std::span<const TokenId> tokens);

  LookupOptions options_;
  SuffixAutomaton automaton_;
  std::size_t certain_ = 0;  // leading tokens of the automaton's text that no rewind has put in doubt
  std::vector<TokenId> drafts_;
};

}  // namespace latte
