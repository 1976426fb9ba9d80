#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/error.h"

namespace latte {

class StandIns;

/// How a text becomes ids.
struct EncodeOptions {
  /// Added tokens (special or not) written out in the text become their ids. Off for text that users write: it can
  /// never forge a role. On for a rendered chat template.
  bool match_special = false;
  /// The beginning-of-sequence token comes first, unless the text brings it along. Ignored when the model has none.
  bool add_bos = false;
  /// Characters that stand for others until the added tokens are found; null for none.
  const StandIns* stand_ins = nullptr;
};

/// A byte-level BPE tokenizer read from tokenizer.json and tokenizer_config.json; gives the ids of the `tokenizers`
/// package. Immutable, cheap to copy, shared between threads.
class Tokenizer {
 public:
  /// Reads tokenizer.json and, when present, tokenizer_config.json of a model folder. Errors: one line with the file
  /// and the key.
  static Result<Tokenizer> load(const std::string& directory);

  /// The same from texts; an empty `tokenizer_config_json` stands for an absent file. `name_for_errors` is the path of
  /// the tokenizer.json in messages.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                 std::string_view name_for_errors);

  /// Ids of a text; each ill-formed UTF-8 sequence in it counts as U+FFFD. Errors: a regular expression of the model
  /// that backtracks without end on this text.
  Result<std::vector<std::int32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// `text` with stand-ins where an added token is spelled, or would be with another text beside it: encoded with
  /// them, no added token matches within. `keep_tags` lets tags such as <think> stay tokens. The same text when there
  /// is nothing to hide. Errors: no character is left to stand in.
  Result<std::string> hide_tokens(std::string_view text, bool keep_tags, StandIns& stand_ins) const;

  /// Text of ids: the bytes of all tokens put together, then U+FFFD for what is no UTF-8. An id without a token adds
  /// nothing; ask `contains` first where that matters. `skip_special` leaves special tokens out.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  /// Largest id + 1.
  int vocab_size() const;

  /// True for an id that has a token; ids may have gaps.
  bool contains(std::int32_t id) const;

  /// Bytes of a token, a part of a character perhaps; empty for an id without one. Valid as long as the tokenizer.
  std::string_view token_bytes(std::int32_t id) const;

  /// True for an added token marked special.
  bool is_special(std::int32_t id) const;

  /// Id of a token as tokenizer.json writes it: an added token's content, or a word in byte-level characters.
  std::optional<std::int32_t> token_to_id(std::string_view token) const;

  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;

  /// True when raw prompts begin with `bos_id()`: add_bos_token of tokenizer_config.json, or the post-processor says
  /// so.
  bool adds_bos() const;

 private:
  struct State;

  explicit Tokenizer(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace latte
