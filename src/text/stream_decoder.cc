#include "text/stream_decoder.h"

#include <utility>

#include "text/utf8.h"

namespace latte {

std::string StreamDecoder::push(std::int32_t id) {
  if (skip_special_ && tokenizer_->is_special(id)) return {};
  pending_.append(tokenizer_->token_bytes(id));
  return take(false);
}

std::string StreamDecoder::finish() {
  std::string text = take(true);
  spaces_left_ = rules_.strip_spaces;
  return text;
}

// What is certain of the pending bytes; all of them when they are the last.
std::string StreamDecoder::take(bool last) {
  std::string text;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const Utf8Step step = decode_utf8(pending_, at);
    if (step.incomplete && !last) break;
    if (step.valid) {
      text.append(pending_, at, step.length);
    } else {
      const std::size_t marks = rules_.replace_bytes ? step.length : 1;
      for (std::size_t i = 0; i < marks; ++i) append_utf8(text, 0xFFFD);
    }
    at += step.length;
  }
  pending_.erase(0, at);
  strip_start(text);
  return text;
}

void StreamDecoder::strip_start(std::string& text) {
  if (spaces_left_ == 0 || text.empty()) return;
  std::size_t spaces = 0;
  while (spaces < text.size() && text[spaces] == ' ' && spaces_left_ > 0) {
    ++spaces;
    --spaces_left_;
  }
  if (spaces < text.size()) spaces_left_ = 0;
  text.erase(0, spaces);
}

}  // namespace latte
