#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "latte/error.h"
#include "text/vocabulary.h"

namespace latte {

/// The tokens around a sentence, from tokenizer_config.json and the post-processor of tokenizer.json.
struct SentenceTokens {
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
  bool adds_bos = false;
};

/// Where the two entries come from, for messages.
struct SentenceTokenSources {
  const nlohmann::json& config;          ///< tokenizer_config.json
  const nlohmann::json& post_processor;  ///< of tokenizer.json, null for none
  std::string_view config_file;
  std::string_view tokenizer_file;
};

/// Reads both. Errors: a token that the vocabulary lacks, an unknown post-processor, add_bos_token without a bos_token.
Result<SentenceTokens> read_sentence_tokens(const SentenceTokenSources& sources, const Vocabulary& vocabulary);

}  // namespace latte
