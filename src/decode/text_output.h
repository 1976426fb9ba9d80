#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/stop_strings.h"
#include "text/stream_decoder.h"

namespace latte {

/// The text of generated ids as it becomes certain: whole characters, special tokens left out, ended by the first stop
/// string. Without a tokenizer the text stays empty.
class TextOutput {
 public:
  /// `prompt`: the ids before; a text that goes on after text keeps the space it begins with.
  TextOutput(const Tokenizer* tokenizer, std::vector<std::string> stops, std::span<const TokenId> prompt = {})
      : stops_(std::move(stops)) {
    if (tokenizer == nullptr) return;
    decoder_.emplace(*tokenizer, true, !prompt.empty() && !tokenizer->is_special(prompt.back()));
  }

  /// Takes an id; what may be shown now. `stopped()` tells whether a stop string came.
  std::string push(TokenId id) { return decoder_.has_value() ? add(decoder_->push(id)) : ""; }
  /// The text ended: what was held back.
  std::string finish() {
    if (!decoder_.has_value() || stopped_) return "";
    std::string rest = add(decoder_->finish());
    if (stopped_) return rest;
    const std::string held = stops_.flush();
    text_ += held;
    return rest + held;
  }

  bool stopped() const { return stopped_; }
  const std::string& text() const { return text_; }

 private:
  std::string add(std::string_view piece) {
    StopStrings::Piece shown = stops_.push(piece);
    stopped_ = shown.stopped;
    text_ += shown.text;
    return std::move(shown.text);
  }

  std::optional<StreamDecoder> decoder_;
  StopStrings stops_;
  std::string text_;
  bool stopped_ = false;
};

}  // namespace latte
