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
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(&tokenizer), skip_special_(skip_special) {}

  /// Takes the next id; returns the text that became certain, often empty in the middle of a character.
  std::string push(std::int32_t id);

  /// Ends the stream: a sequence that never became whole is U+FFFD. The decoder is then ready for another stream.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::string pending_;  // the start of a sequence, at most 3 bytes between calls
};

}  // namespace latte
