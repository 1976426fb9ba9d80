#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "io/file_map.h"
#include "text/json_text.h"
#include "text/stand_ins.h"
#include "text/stream_decoder.h"
#include "text/tokenizer_state.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte {

Status TokenizerState::add_tokens(const std::vector<AddedToken>& tokens) {
  for (const AddedToken& token : tokens) {
    const Status added = vocabulary.add_token(token, file);
    if (!added.ok()) return added;
    if (!token.normalized) {
      raw_tokens.add(token, token.content);
      continue;
    }
    auto content = normalizer.apply(token.content);
    if (!content.ok()) return content.error();
    normalized_tokens.add(token, std::move(*content));
  }
  return {};
}

Status TokenizerState::encode_raw(std::string_view text, const EncodeOptions& options,
                                  std::vector<std::int32_t>& ids) const {
  std::size_t from = 0;
  if (options.match_special && !raw_tokens.empty()) {
    for (const AddedTokenMatcher::Match& match : raw_tokens.find_all(text)) {
      const Status before = encode_segment(text.substr(from, match.span.begin - from), from == 0, options, ids);
      if (!before.ok()) return before;
      ids.push_back(match.id);
      from = match.span.end;
    }
  }
  return encode_segment(text.substr(from), from == 0, options, ids);
}

// A text without raw added tokens: normalise it, then look for the others.
Status TokenizerState::encode_segment(std::string_view text, bool starts_text, const EncodeOptions& options,
                                      std::vector<std::int32_t>& ids) const {
  std::string owned;
  if (normalizer.changes_text()) {
    auto normalized = normalizer.apply(text, starts_text);
    if (!normalized.ok()) return normalized.error();
    owned = std::move(*normalized);
    text = owned;
  }
  std::size_t from = 0;
  if (options.match_special && !normalized_tokens.empty()) {
    for (const AddedTokenMatcher::Match& match : normalized_tokens.find_all(text)) {
      const Status before =
          encode_plain(text.substr(from, match.span.begin - from), starts_text && from == 0, options.stand_ins, ids);
      if (!before.ok()) return before;
      ids.push_back(match.id);
      from = match.span.end;
    }
  }
  return encode_plain(text.substr(from), starts_text && from == 0, options.stand_ins, ids);
}

Status TokenizerState::encode_plain(std::string_view text, bool starts_text, const StandIns* stand_ins,
                                    std::vector<std::int32_t>& ids) const {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
    return fail(ErrorKind::kInvalidInput, "a text of {} bytes, expected at most 1 GiB; split it", text.size());
  }
  std::string revealed;
  if (stand_ins != nullptr) {
    revealed = stand_ins->reveal(text);
    text = revealed;
  }
  return model->encode(text, starts_text, ids);
}

std::optional<std::string> Tokenizer::find_file(const std::string& directory) {
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tiktoken.model"}) {
    const std::string path = directory + "/" + name;
    if (name_exists(path)) return path;
  }
  return std::nullopt;
}

Result<Tokenizer> Tokenizer::load(const std::string& directory) {
  const auto path = find_file(directory);
  if (!path.has_value()) {
    return fail(ErrorKind::kNotFound,
                "{}: no tokenizer, expected tokenizer.json, tokenizer.model or tiktoken.model; check the model folder",
                directory);
  }
  const auto content = read_text_file(*path);
  if (!content.ok()) return content.error();
  const bool json = path->ends_with("/tokenizer.json");
  const bool tiktoken = path->ends_with("/tiktoken.model") || looks_like_tiktoken(*content);
  const TokenizerKind kind = json       ? TokenizerKind::kJson
                             : tiktoken ? TokenizerKind::kTiktoken
                                        : TokenizerKind::kSentencePiece;
  auto config = read_text_file(directory + "/tokenizer_config.json");
  if (!config.ok()) {
    if (config.error().kind != ErrorKind::kNotFound) return config.error();
    return parse(kind, *content, {}, *path);
  }
  if (config->empty()) {
    return fail(ErrorKind::kInvalidInput, "{}/tokenizer_config.json: is empty, expected a JSON object; fetch it again",
                directory);
  }
  return parse(kind, *content, *config, *path);
}

Result<Tokenizer> Tokenizer::parse(TokenizerKind kind, std::string_view content, std::string_view tokenizer_config_json,
                                   std::string_view name_for_errors) {
  const std::string_view file = name_for_errors;
  const std::size_t slash = file.rfind('/');
  const std::string config_file =
      std::string(slash == std::string_view::npos ? "" : file.substr(0, slash + 1)) + "tokenizer_config.json";
  const auto config = parse_json_text(tokenizer_config_json.empty() ? "{}" : tokenizer_config_json, config_file);
  if (!config.ok()) return config.error();
  if (!config->is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: is {}, expected a JSON object", config_file,
                with_article(config->type_name()));
  }
  const TokenizerSource source{.text = content, .file = file, .config = *config, .config_file = config_file};
  auto state = kind == TokenizerKind::kJson       ? read_json_tokenizer(source)
               : kind == TokenizerKind::kTiktoken ? read_tiktoken(source)
                                                  : read_sentencepiece(source);
  if (!state.ok()) return state.error();
  return Tokenizer(std::move(*state));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  std::vector<std::int32_t> ids;
  const Status encoded = state_->encode_raw(text, options, ids);
  if (!encoded.ok()) {
    return fail(encoded.error().kind, "{}: {}; the file's expressions fit no such text, or it is damaged", file(),
                encoded.error().message);
  }
  const auto bos = state_->sentence.bos;
  if (options.add_bos && bos.has_value() && (ids.empty() || ids.front() != *bos)) ids.insert(ids.begin(), *bos);
  return ids;
}

Result<std::string> Tokenizer::hide_tokens(std::string_view text, bool keep_tags, StandIns& stand_ins) const {
  const std::string valid = replace_invalid_utf8(text);
  std::vector<std::size_t> places;
  state_->raw_tokens.add_places(valid, keep_tags, places);
  state_->normalized_tokens.add_places(valid, keep_tags, places);
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  Result<std::string> hidden = stand_ins.hide(valid, places);
  if (!hidden.ok() || !state_->normalizer.changes_text() || state_->normalized_tokens.empty()) return hidden;
  // Normalisation may spell a token out of other characters; then none of them stays.
  auto normalized = state_->normalizer.apply(*hidden);
  if (!normalized.ok()) return normalized.error();
  std::vector<std::size_t> made;
  state_->normalized_tokens.add_places(*normalized, keep_tags, made);
  if (made.empty()) return hidden;
  places.clear();
  for (std::size_t at = 0; at < valid.size(); at += decode_utf8(valid, at).length) places.push_back(at);
  return stand_ins.hide(valid, places);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  StreamDecoder stream(*this, skip_special);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

const std::string& Tokenizer::file() const { return state_->file; }

const DecodeRules& Tokenizer::decode_rules() const { return state_->decode_rules; }

int Tokenizer::vocab_size() const { return state_->vocabulary.size(); }

bool Tokenizer::contains(std::int32_t id) const { return state_->vocabulary.contains(id); }

std::string_view Tokenizer::token_bytes(std::int32_t id) const { return state_->vocabulary.bytes(id); }

bool Tokenizer::is_special(std::int32_t id) const { return state_->vocabulary.is_special(id); }

std::optional<std::int32_t> Tokenizer::token_to_id(std::string_view token) const {
  return state_->vocabulary.find(token);
}

std::optional<std::int32_t> Tokenizer::bos_id() const { return state_->sentence.bos; }

std::optional<std::int32_t> Tokenizer::eos_id() const { return state_->sentence.eos; }

bool Tokenizer::adds_bos() const { return state_->sentence.adds_bos; }

}  // namespace latte
