#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/text_model.h"

namespace latte {

/// The BPE of a tokenizer.json: pieces of the pre-tokenizer, each taken apart into bytes or characters and merged.
class BpeModel : public TextModel {
 public:
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  /// Words that are taken whole before any merging (ignore_merges), by their text; empty when there are none.
  std::unordered_map<std::string, std::int32_t> whole_words;

  Status encode(std::string_view text, bool starts_text, std::vector<std::int32_t>& ids) const override;

 protected:
  virtual void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids, Bpe::Scratch& scratch) const {
    bpe.encode_piece(piece, ids, scratch);
  }
};

/// The same over characters: one that is no token becomes its bytes (byte_fallback) or the unknown token.
class CharacterBpeModel : public BpeModel {
 public:
  std::unordered_map<char32_t, std::int32_t> characters;
  /// The token of each byte; -1 for none. A character falls back only when all its bytes have one.
  std::array<std::int32_t, 256> fallback_ids{};

 protected:
  void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids, Bpe::Scratch& scratch) const override;

 private:
  bool fall_back(std::string_view character, std::vector<std::int32_t>& symbols) const;
};

}  // namespace latte
