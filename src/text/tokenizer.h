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

/// How the bytes of tokens become the text that is shown.
struct DecodeRules {
  int strip_spaces = 0;        ///< spaces left out where a text begins: the one that encoding put before it
  bool replace_bytes = false;  ///< one U+FFFD for each byte that is no UTF-8, rather than for each ill-formed sequence
};

/// The kinds of files that a tokenizer is read from.
enum class TokenizerKind { kJson, kSentencePiece, kTiktoken };

struct TokenizerState;

/// A tokenizer: byte-level BPE or BPE over characters of a tokenizer.json (the ids of the `tokenizers` package), a
/// SentencePiece model (the ids of `sentencepiece`) or a tiktoken file with Kimi's expression (the ids of `tiktoken`).
/// Immutable, cheap to copy, shared between threads.
class Tokenizer {
 public:
  /// The file of a model folder that `load` reads: tokenizer.json, else tokenizer.model, else tiktoken.model; nothing
  /// when there is none.
  static std::optional<std::string> find_file(const std::string& directory);

  /// Reads that file and, when present, tokenizer_config.json. A tokenizer.model may be either of the two kinds, its
  /// content says which. Errors: one line with the file and the key, line or byte; kNotFound when there is no file.
  static Result<Tokenizer> load(const std::string& directory);

  /// A tokenizer.json from texts; an empty `tokenizer_config_json` stands for an absent file. `name_for_errors` is the
  /// path of the tokenizer.json in messages.
  static Result<Tokenizer> parse(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                 std::string_view name_for_errors) {
    return parse(TokenizerKind::kJson, tokenizer_json, tokenizer_config_json, name_for_errors);
  }

  /// The same for the content of a file of any kind.
  static Result<Tokenizer> parse(TokenizerKind kind, std::string_view content, std::string_view tokenizer_config_json,
                                 std::string_view name_for_errors);

  /// Path of the file it was read from.
  const std::string& file() const;

  /// Ids of a text; each ill-formed UTF-8 sequence in it counts as U+FFFD. Errors: a regular expression of the model
  /// that backtracks without end on this text.
  Result<std::vector<std::int32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// `text` with stand-ins where an added token is spelled, or would be with another text beside it: encoded with
  /// them, no added token matches within. `keep_tags` lets tags such as <think> stay tokens. The same text when there
  /// is nothing to hide. Errors: no character is left to stand in.
  Result<std::string> hide_tokens(std::string_view text, bool keep_tags, StandIns& stand_ins) const;

  /// Text of ids: the bytes of all tokens put together, then U+FFFD for what is no UTF-8; without the space that a
  /// SentencePiece vocabulary puts before a text. An id without a token adds nothing; ask `contains` first where that
  /// matters. `skip_special` leaves special tokens out.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  /// Largest id + 1.
  int vocab_size() const;

  /// True for an id that has a token; ids may have gaps.
  bool contains(std::int32_t id) const;

  /// Bytes of a token, a part of a character perhaps; empty for an id without one. Valid as long as the tokenizer.
  std::string_view token_bytes(std::int32_t id) const;

  /// True for an added token marked special.
  bool is_special(std::int32_t id) const;

  /// Id of a token as its file writes it: an added token's content, or a word in byte-level characters, with U+2581 for
  /// spaces, or in bytes.
  std::optional<std::int32_t> token_to_id(std::string_view token) const;

  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;

  const DecodeRules& decode_rules() const;

  /// True when raw prompts begin with `bos_id()`: add_bos_token of tokenizer_config.json, or the post-processor says
  /// so.
  bool adds_bos() const;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}

  std::shared_ptr<const TokenizerState> state_;
};

}  // namespace latte
