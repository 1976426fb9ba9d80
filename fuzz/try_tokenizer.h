#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/contract.h"
#include "latte/error.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace latte {

inline void expect_one_line(const Error& error) {
  expects(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is one line");
}

/// Encodes and decodes a short text: ids have tokens, what is no added token gives none that is special but the unknown
/// one, and a stream gives the text of its ids.
inline void try_tokenizer(const Tokenizer& tokenizer, std::optional<std::int32_t> unknown) {
  static constexpr std::string_view kText =
      "<s>Hi 12 caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF a  b\r\n\tx!</s>\xE2\x96\x81<0x41>[EOS]";
  for (const bool match_special : {false, true}) {
    const auto ids = tokenizer.encode(kText, {.match_special = match_special, .add_bos = match_special});
    if (!ids.ok()) {
      expect_one_line(ids.error());
      continue;
    }
    StreamDecoder stream(tokenizer);
    std::string text;
    for (const std::int32_t id : *ids) {
      expects(tokenizer.contains(id), "encoding gives ids that have tokens");
      // A token of one character or byte is just that, however it is marked.
      const bool character = count_code_points(replace_invalid_utf8(tokenizer.token_bytes(id))) <= 1 ||
                             byte_of_word(tokenizer.token_bytes(id)).has_value();
      expects(match_special || !tokenizer.is_special(id) || id == unknown || character, "text gives no special token");
      text += stream.push(id);
    }
    text += stream.finish();
    expects(text == tokenizer.decode(*ids), "a stream gives the text of its ids");
    expects(is_valid_utf8(text), "decoding gives valid UTF-8");
  }
}

}  // namespace latte
