#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/pre_tokenizer.h"
#include "text/text_model.h"

namespace latte {

/// Byte pair encoding by ranks alone, as tiktoken has it: a piece that is a token is taken whole; else the two
/// neighbours whose concatenation is the token of lowest rank merge, leftmost among equals. A rank is an id.
class RankBpe : public TextModel {
 public:
  PreTokenizer pre_tokenizer;

  void reserve(std::size_t count) { ranks_.reserve(count); }
  /// False when the token has a rank already.
  bool add(std::string_view token, std::int32_t rank) { return ranks_.emplace(token, rank).second; }
  /// Takes a token out: no text gives its id any more. For those that a configuration lists as added.
  void remove(std::string_view token) { ranks_.erase(std::string(token)); }
  bool contains(std::string_view token) const { return ranks_.find(token) != ranks_.end(); }

  /// Expects a rank for each of the 256 bytes.
  Status encode(std::string_view text, bool starts_text, std::vector<std::int32_t>& ids) const override;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  // A symbol is known by the byte that it begins at.
  struct Scratch {
    struct Symbol {
      std::int32_t end = 0;
      std::int32_t previous = -1;
      std::int32_t rank = -1;  // the token that it is; -1 once merged away
    };
    struct Candidate {
      std::int32_t rank, begin, end;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  std::int32_t rank_of(std::string_view token) const;
  void push_candidate(std::string_view piece, std::int32_t begin, Scratch& scratch) const;
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids, Scratch& scratch) const;

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ranks_;
};

}  // namespace latte
