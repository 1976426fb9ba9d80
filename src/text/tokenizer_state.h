#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "text/added_tokens.h"
#include "text/normalizer.h"
#include "text/sentence_tokens.h"
#include "text/text_model.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace latte {

/// What copies of a Tokenizer share.
struct TokenizerState {
  std::string file;
  Normalizer normalizer;
  std::unique_ptr<const TextModel> model;
  Vocabulary vocabulary;
  AddedTokenMatcher raw_tokens;         ///< matched in the text as it came
  AddedTokenMatcher normalized_tokens;  ///< matched after normalisation
  SentenceTokens sentence;
  DecodeRules decode_rules;

  /// Takes added tokens into the vocabulary and the matchers; after the words and the normalizer.
  Status add_tokens(const std::vector<AddedToken>& tokens);

  Status encode_raw(std::string_view text, const EncodeOptions& options, std::vector<std::int32_t>& ids) const;

 private:
  Status encode_segment(std::string_view text, bool starts_text, const EncodeOptions& options,
                        std::vector<std::int32_t>& ids) const;
  Status encode_plain(std::string_view text, bool starts_text, const StandIns* stand_ins,
                      std::vector<std::int32_t>& ids) const;
};

/// The texts of a model folder that a tokenizer is read from, with the names that errors give them.
struct TokenizerSource {
  std::string_view text;  ///< tokenizer.json, or the bytes of tokenizer.model or tiktoken.model
  std::string_view file;
  const nlohmann::json& config;  ///< tokenizer_config.json, an object
  std::string_view config_file;
};

/// One reader per kind of file. Errors: one line with the file and the key, line or byte.
Result<std::shared_ptr<TokenizerState>> read_json_tokenizer(const TokenizerSource& source);
Result<std::shared_ptr<TokenizerState>> read_tiktoken(const TokenizerSource& source);
Result<std::shared_ptr<TokenizerState>> read_sentencepiece(const TokenizerSource& source);

/// True when the first line of a text is that of a tiktoken file: base64 and a rank.
bool looks_like_tiktoken(std::string_view text);

}  // namespace latte
