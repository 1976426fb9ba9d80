#include "text/bpe_model.h"

#include <algorithm>

#include "text/piece_cache.h"
#include "text/utf8.h"

namespace latte {

Status BpeModel::encode(std::string_view text, bool starts_text, std::vector<std::int32_t>& ids) const {
  const auto split = pre_tokenizer.split(text, starts_text);
  if (!split.ok()) return split.error();
  PieceCache cache(ids);
  Bpe::Scratch scratch;
  for (const TextSpan& span : split->pieces) {
    cache.append(std::string_view(split->text).substr(span.begin, span.size()), [&](std::string_view piece) {
      const auto whole = whole_words.empty() ? whole_words.end() : whole_words.find(std::string(piece));
      if (whole != whole_words.end()) {
        ids.push_back(whole->second);
      } else {
        encode_piece(piece, ids, scratch);
      }
    });
  }
  return {};
}

bool CharacterBpeModel::fall_back(std::string_view character, std::vector<std::int32_t>& symbols) const {
  const auto id_of = [&](char byte) { return fallback_ids[static_cast<unsigned char>(byte)]; };
  if (std::any_of(character.begin(), character.end(), [&](char byte) { return id_of(byte) < 0; })) return false;
  for (const char byte : character) symbols.push_back(id_of(byte));
  return true;
}

void CharacterBpeModel::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids,
                                     Bpe::Scratch& scratch) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(piece.size());
  // An unknown token waits until the next known character, as it does in the tokenizers package.
  std::size_t unknown = 0;
  const auto flush_unknown = [&] {
    symbols.insert(symbols.end(), bpe.fuse_unknown ? std::min<std::size_t>(unknown, 1) : unknown,
                   bpe.unknown_id.value_or(0));
    unknown = 0;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const Utf8Step step = decode_utf8(piece, at);
    const auto known = characters.find(step.code_point);
    if (known != characters.end()) {
      flush_unknown();
      symbols.push_back(known->second);
    } else if (!fall_back(piece.substr(at, step.length), symbols) && bpe.unknown_id.has_value()) {
      ++unknown;
    }
    at += step.length;
  }
  flush_unknown();
  bpe.encode_symbols(symbols, ids, scratch);
}

}  // namespace latte
