#include "text/stream_decoder.h"

#include <utility>

#include "text/utf8.h"

namespace latte {

std::string StreamDecoder::push(std::int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  pending_.append(tokenizer_->token_bytes(id));
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Step step = decode_utf8(pending_, at);
    if (step.incomplete) break;
    if (step.valid) {
      text.append(pending_, at, step.length);
    } else {
      append_utf8(text, 0xFFFD);
    }
    at += step.length;
  }
  pending_.erase(0, at);
  return text;
}

std::string StreamDecoder::finish() { return replace_invalid_utf8(std::exchange(pending_, {})); }

}  // namespace latte
