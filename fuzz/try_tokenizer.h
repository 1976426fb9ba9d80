#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/contract.h"
#include "latte/error.h"
#include "text/stand_ins.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace latte {

inline void expect_one_line(const Error& error) {
  expects(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is one line");
}

inline constexpr std::string_view kFuzzText =
    "<s>Hi 12 caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF a  b\r\n\tx! </s> \xE2\x96\x81<0x41>[EOS]";

/// Ids have tokens, and a stream of them gives the text of them all.
inline void expect_streams(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
  StreamDecoder stream(tokenizer);
  std::string text;
  for (const std::int32_t id : ids) {
    expects(tokenizer.contains(id), "encoding gives ids that have tokens");
    text += stream.push(id);
  }
  text += stream.finish();
  expects(text == tokenizer.decode(ids), "a stream gives the text of its ids");
  expects(is_valid_utf8(text), "decoding gives valid UTF-8");
}

/// No id is special but the unknown one, and those of one character or byte, which are just that.
inline void expect_plain(const Tokenizer& tokenizer, const std::vector<std::int32_t>& ids,
                         std::optional<std::int32_t> unknown) {
  for (const std::int32_t id : ids) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    const bool character = count_code_points(replace_invalid_utf8(bytes)) <= 1 || byte_of_word(bytes).has_value();
    expects(!tokenizer.is_special(id) || id == unknown || character, "text gives no special token");
  }
}

/// Encodes and decodes a short text: as users write it, and hidden within a prompt, it gives no special token.
inline void try_tokenizer(const Tokenizer& tokenizer, std::optional<std::int32_t> unknown) {
  for (const bool match_special : {false, true}) {
    const auto ids = tokenizer.encode(kFuzzText, {.match_special = match_special, .add_bos = match_special});
    if (!ids.ok()) {
      expect_one_line(ids.error());
      continue;
    }
    expect_streams(tokenizer, *ids);
    if (!match_special) expect_plain(tokenizer, *ids, unknown);
  }
  for (const bool keep_tags : {false, true}) {
    StandIns stand_ins;
    stand_ins.avoid(kFuzzText);
    const auto hidden = tokenizer.hide_tokens(kFuzzText, keep_tags, stand_ins);
    if (!hidden.ok()) return expect_one_line(hidden.error());
    expects(stand_ins.reveal(*hidden) == replace_invalid_utf8(kFuzzText), "a stand-in stands for its character");
    const auto ids = tokenizer.encode(*hidden, {.match_special = true, .stand_ins = &stand_ins});
    if (!ids.ok()) return expect_one_line(ids.error());
    expect_streams(tokenizer, *ids);
    expect_plain(tokenizer, *ids, unknown);
  }
}

}  // namespace latte
