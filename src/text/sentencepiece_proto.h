#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte {

/// The parts of a SentencePiece model file (a ModelProto) that encoding and decoding depend on, checked.
struct SentencePieceProto {
  enum class Type : std::uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };

  std::vector<Piece> pieces;  ///< by id
  bool unigram = true;        ///< model_type; false: BPE
  bool byte_fallback = false;
  std::int32_t bos_id = 1;
  std::int32_t eos_id = 2;
  std::string charsmap;  ///< precompiled_charsmap: how characters are normalised, empty for not at all
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  /// Reads a file's bytes. Nothing is allocated by a number of the file. Errors name the file and the byte or the
  /// piece: broken protobuf, text that is no UTF-8, a type or a model that latte does not know, not one unknown piece,
  /// a charsmap that would be read past its end.
  static Result<SentencePieceProto> parse(std::string_view bytes, std::string_view file);

  /// These parts as a file: all that the library is given.
  std::string serialize() const;
};

/// Checks a precompiled_charsmap: a double-array trie whose leaves point into texts that end in NUL. The library walks
/// it without checks. False when a walk could leave it, go round in it, or find more than 32 leaves.
bool is_safe_charsmap(std::string_view charsmap);

}  // namespace latte
