#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// What the decoder of a tokenizer.json says of its words.
struct DecoderEntry {
  bool byte_level = false;     ///< words are written in byte-level characters
  bool byte_fallback = false;  ///< words <0xHH> stand for bytes
  int strip_spaces = 0;        ///< spaces that decoding leaves out at the start of a text
};

/// Reads the `decoder` entry: ByteLevel, or a Sequence of Replace (U+2581 by a space), ByteFallback, Fuse and Strip in
/// this order, all but Replace and Fuse optional. Errors: any other, by name.
Result<DecoderEntry> parse_decoder(const nlohmann::json& entry, std::string_view file);

}  // namespace latte
