#include "text/sentence_tokens.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/type_words.h"

namespace latte {
namespace {

Result<std::optional<std::int32_t>> named_token(const SentenceTokenSources& sources, const char* key,
                                                const Vocabulary& vocabulary) {
  using Found = std::optional<std::int32_t>;
  const auto entry = sources.config.find(key);
  if (entry == sources.config.end() || entry->is_null()) return Found();
  const nlohmann::json* content = &*entry;
  if (entry->is_object() && entry->contains("content")) content = &entry->at("content");
  if (!content->is_string()) {
    return fail(ErrorKind::kInvalidInput, "{}: {} is {}, expected a token, an object with its content, or no key",
                sources.config_file, content == &*entry ? key : fmt::format("{}.content", key),
                with_article(content->type_name()));
  }
  const auto& text = content->get_ref<const std::string&>();
  if (text.empty()) return Found();
  const Found id = vocabulary.find(text);
  if (!id.has_value()) {
    return fail(ErrorKind::kInvalidInput, "{}: {} is {}, which {} does not list; expected one of its tokens",
                sources.config_file, key, quote_for_error(text), sources.tokenizer_file);
  }
  return id;
}

// The special token a TemplateProcessing puts before the text. What it puts behind is left out on purpose: a prompt
// that ends in an end-of-sequence token could not be continued.
Result<std::optional<std::string>> leading_token(const nlohmann::json& entry, const std::string& key,
                                                 std::string_view file) {
  using Found = std::optional<std::string>;
  Found leading;
  const auto single = entry.find("single");
  if (single == entry.end() || !single->is_array()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}.single, expected a list", file, key);
  }
  for (const nlohmann::json& part : *single) {
    if (!part.is_object() || !part.contains("SpecialToken")) break;
    const nlohmann::json& token = part.at("SpecialToken");
    if (!token.is_object() || !token.contains("id") || !token.at("id").is_string()) {
      return fail(ErrorKind::kInvalidInput, "{}: {}.single, expected a SpecialToken with a string \"id\"", file, key);
    }
    if (leading.has_value()) {
      return fail(ErrorKind::kUnsupported, "{}: {}.single puts several tokens before the text, expected at most one",
                  file, key);
    }
    leading = token.at("id").get<std::string>();
  }
  return leading;
}

Status read_post_processor(const nlohmann::json& entry, const std::string& key, const SentenceTokenSources& sources,
                           const Vocabulary& vocabulary, int depth, SentenceTokens& tokens) {
  const std::string_view file = sources.tokenizer_file;
  const auto type = json_type_name(entry, key, file);
  if (!type.ok()) return type.error();
  if (*type == "ByteLevel") return {};  // moves offsets only
  if (*type == "Sequence") {
    const auto members = entry.find("processors");
    if (members == entry.end() || !members->is_array() || depth >= kMostSequences) {
      return fail(ErrorKind::kInvalidInput, "{}: {}.processors, expected a list nested at most {} times", file, key,
                  kMostSequences);
    }
    std::size_t index = 0;
    for (const nlohmann::json& member : *members) {
      const Status read = read_post_processor(member, fmt::format("{}.processors[{}]", key, index++), sources,
                                              vocabulary, depth + 1, tokens);
      if (!read.ok()) return read;
    }
    return {};
  }
  if (*type != "TemplateProcessing") {
    return fail(ErrorKind::kUnsupported, "{}: {}.type {}, expected Sequence, ByteLevel or TemplateProcessing", file,
                key, quote_for_error(*type));
  }
  const auto leading = leading_token(entry, key, file);
  if (!leading.ok()) return leading.error();
  if (!leading->has_value()) return {};
  const auto id = vocabulary.find(**leading);
  if (!id.has_value() || (tokens.bos.has_value() && tokens.bos != id)) {
    return fail(ErrorKind::kUnsupported, "{}: {}.single puts {} before the text, expected the bos_token", file, key,
                quote_for_error(**leading));
  }
  tokens.bos = id;
  tokens.adds_bos = true;
  return {};
}

}  // namespace

Result<SentenceTokens> read_sentence_tokens(const SentenceTokenSources& sources, const Vocabulary& vocabulary) {
  if (!sources.config.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: is {}, expected a JSON object", sources.config_file,
                with_article(sources.config.type_name()));
  }
  SentenceTokens tokens;
  const auto bos = named_token(sources, "bos_token", vocabulary);
  if (!bos.ok()) return bos.error();
  tokens.bos = *bos;
  const auto eos = named_token(sources, "eos_token", vocabulary);
  if (!eos.ok()) return eos.error();
  tokens.eos = *eos;
  if (!sources.post_processor.is_null()) {
    const Status read = read_post_processor(sources.post_processor, "post_processor", sources, vocabulary, 0, tokens);
    if (!read.ok()) return read.error();
  }
  const auto add_bos = json_bool(sources.config, "add_bos_token", false, "(root)", sources.config_file);
  if (!add_bos.ok()) return add_bos.error();
  if (*add_bos && !tokens.bos.has_value()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: add_bos_token is true but bos_token is not set, expected both or neither", sources.config_file);
  }
  tokens.adds_bos = tokens.adds_bos || *add_bos;
  return tokens;
}

}  // namespace latte
