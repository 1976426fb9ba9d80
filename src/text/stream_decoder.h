#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.h"

namespace latte {

/// Turns ids into text one by one without ever cutting a character: bytes wait until their UTF-8 sequence is whole. The
/// pieces put together, `finish` included, are exactly `Tokenizer::decode` of all the ids. The tokenizer must outlive
/// it.
class StreamDecoder {
 public:
  /// `continues_text`: text stands before what comes, so a space at its start is one that counts.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false, bool continues_text = false)
      : tokenizer_(&tokenizer),
        rules_(tokenizer.decode_rules()),
        skip_special_(skip_special),
        spaces_left_(continues_text ? 0 : rules_.strip_spaces) {}

  /// Takes the next id; returns the text that became certain, often empty in the middle of a character.
  std::string push(std::int32_t id);

  /// Ends the stream: a sequence that never became whole is U+FFFD. The decoder is then ready for another stream, one
  /// with nothing before it.
  std::string finish();

 private:
  std::string take(bool last);
  void strip_start(std::string& text);

  const Tokenizer* tokenizer_;
  DecodeRules rules_;
  bool skip_special_;
  int spaces_left_;      // that are left out before the first other character
  std::string pending_;  // the start of a sequence, at most 3 bytes between calls
};

}  // namespace latte
