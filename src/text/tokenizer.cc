#include "text/tokenizer.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/fail.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/json_text.h"
#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/sentence_tokens.h"
#include "text/stand_ins.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace latte {

struct Tokenizer::State {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  bool whole_pieces_first = false;  // ignore_merges: a piece that is a token needs no merging
  Vocabulary vocabulary;
  AddedTokenMatcher raw_tokens;         // matched in the text as it came
  AddedTokenMatcher normalized_tokens;  // matched after normalisation
  SentenceTokens sentence;

  Status build_model(TokenizerJson& source, std::string_view file);
  Status build_merges(const TokenizerJson& source, std::string_view file);
  Status build_added_tokens(const nlohmann::json& entry, std::string_view file);
  Status encode_raw(std::string_view text, const EncodeOptions& options, std::vector<std::int32_t>& ids) const;
  Status encode_segment(std::string_view text, const EncodeOptions& options, std::vector<std::int32_t>& ids) const;
  Status encode_plain(std::string_view text, const StandIns* stand_ins, std::vector<std::int32_t>& ids) const;
};

namespace {

// An entry of the document, or null.
const nlohmann::json& entry_of(const nlohmann::json& document, const char* key) {
  static const nlohmann::json kNull;
  const auto found = document.find(key);
  return found == document.end() ? kNull : *found;
}

bool is_absent(const nlohmann::json& entry) {
  return entry.is_null() || (entry.is_string() && entry.get_ref<const std::string&>().empty());
}

// Options of the model that change its ids; what latte does not do is refused by name.
Status check_model_options(const nlohmann::json& model, std::string_view file) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!is_absent(entry_of(model, key))) {
      return fail(ErrorKind::kUnsupported, "{}: model.{} is set, expected null; this tokenizer is not supported", file,
                  key);
    }
  }
  const nlohmann::json& dropout = entry_of(model, "dropout");
  if (!dropout.is_null() && !(dropout.is_number() && dropout.get<double>() == 0.0)) {
    return fail(ErrorKind::kUnsupported, "{}: model.dropout is set, expected null; it would make the ids random", file);
  }
  const auto byte_fallback = json_bool(model, "byte_fallback", false, "model", file);
  if (!byte_fallback.ok()) return byte_fallback.error();
  if (*byte_fallback) {
    return fail(ErrorKind::kUnsupported,
                "{}: model.byte_fallback is true, expected false; only byte-level BPE is supported", file);
  }
  return {};
}

Status check_decoder(const nlohmann::json& decoder, std::string_view file) {
  const auto type = json_type_name(decoder, "decoder", file);
  if (!type.ok()) return type.error();
  if (*type == "ByteLevel") return {};
  return fail(ErrorKind::kUnsupported, "{}: decoder.type {}, expected ByteLevel; only byte-level BPE is supported",
              file, quote_for_error(*type));
}

}  // namespace

Status Tokenizer::State::build_model(TokenizerJson& source, std::string_view file) {
  const nlohmann::json& model = entry_of(source.document, "model");
  if (!model.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: model is missing, expected an object with type BPE", file);
  }
  // Files of the first years leave the type out.
  const nlohmann::json& type = entry_of(model, "type");
  if (!type.is_null() && type != "BPE") {
    return fail(ErrorKind::kUnsupported, "{}: model.type {}, expected \"BPE\"; this tokenizer is not supported", file,
                type.is_string() ? quote_for_error(type.get_ref<const std::string&>()) : type.type_name());
  }
  const Status options = check_model_options(model, file);
  if (!options.ok()) return options;
  if (source.vocab.empty()) {
    return fail(ErrorKind::kInvalidInput, "{}: model.vocab is missing or empty, expected an object of tokens and ids",
                file);
  }
  const Status words = vocabulary.add_words(std::move(source.vocab), file);
  if (!words.ok()) return words;

  std::string character;
  for (int byte = 0; byte < 256; ++byte) {
    character.clear();
    append_utf8(character, byte_level_char(static_cast<unsigned char>(byte)));
    bpe.byte_ids[byte] = vocabulary.find(character).value_or(-1);
  }
  const nlohmann::json& unknown = entry_of(model, "unk_token");
  if (!unknown.is_null()) {
    if (unknown.is_string()) bpe.unknown_id = vocabulary.find(unknown.get_ref<const std::string&>());
    if (!bpe.unknown_id.has_value()) {
      return fail(ErrorKind::kInvalidInput, "{}: model.unk_token is no token of model.vocab, expected one or null",
                  file);
    }
  }
  const auto fuse = json_bool(model, "fuse_unk", false, "model", file);
  if (!fuse.ok()) return fuse.error();
  bpe.fuse_unknown = *fuse;
  const auto ignore_merges = json_bool(model, "ignore_merges", false, "model", file);
  if (!ignore_merges.ok()) return ignore_merges.error();
  whole_pieces_first = *ignore_merges;
  return build_merges(source, file);
}

Status Tokenizer::State::build_merges(const TokenizerJson& source, std::string_view file) {
  bpe.reserve_merges(source.merges.size());
  std::string joined;
  std::int32_t rank = 0;
  for (const auto& [left, right] : source.merges) {
    joined.assign(left).append(right);
    const auto left_id = vocabulary.find(left);
    const auto right_id = vocabulary.find(right);
    const auto merged_id = vocabulary.find(joined);
    if (!left_id.has_value() || !right_id.has_value() || !merged_id.has_value()) {
      const std::string& missing = !left_id.has_value() ? left : !right_id.has_value() ? right : joined;
      return fail(ErrorKind::kInvalidInput, "{}: model.merges[{}] names token {}, expected a token of model.vocab",
                  file, rank, quote_for_error(missing));
    }
    bpe.add_merge(*left_id, *right_id, {.rank = rank, .merged = *merged_id});
    ++rank;
  }
  return {};
}

Status Tokenizer::State::build_added_tokens(const nlohmann::json& entry, std::string_view file) {
  auto tokens = parse_added_tokens(entry, file, kMaxTokenId);
  if (!tokens.ok()) return tokens.error();
  for (const AddedToken& token : *tokens) {
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

Status Tokenizer::State::encode_raw(std::string_view text, const EncodeOptions& options,
                                    std::vector<std::int32_t>& ids) const {
  std::size_t from = 0;
  if (options.match_special && !raw_tokens.empty()) {
    for (const AddedTokenMatcher::Match& match : raw_tokens.find_all(text)) {
      const Status before = encode_segment(text.substr(from, match.span.begin - from), options, ids);
      if (!before.ok()) return before;
      ids.push_back(match.id);
      from = match.span.end;
    }
  }
  return encode_segment(text.substr(from), options, ids);
}

// A text without raw added tokens: normalise it, then look for the others.
Status Tokenizer::State::encode_segment(std::string_view text, const EncodeOptions& options,
                                        std::vector<std::int32_t>& ids) const {
  std::string owned;
  if (normalizer.changes_text()) {
    auto normalized = normalizer.apply(text);
    if (!normalized.ok()) return normalized.error();
    owned = std::move(*normalized);
    text = owned;
  }
  std::size_t from = 0;
  if (options.match_special && !normalized_tokens.empty()) {
    for (const AddedTokenMatcher::Match& match : normalized_tokens.find_all(text)) {
      const Status before = encode_plain(text.substr(from, match.span.begin - from), options.stand_ins, ids);
      if (!before.ok()) return before;
      ids.push_back(match.id);
      from = match.span.end;
    }
  }
  return encode_plain(text.substr(from), options.stand_ins, ids);
}

Status Tokenizer::State::encode_plain(std::string_view text, const StandIns* stand_ins,
                                      std::vector<std::int32_t>& ids) const {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max() / 2)) {
    return fail(ErrorKind::kInvalidInput, "a text of {} bytes, expected at most 1 GiB; split it", text.size());
  }
  std::string revealed;
  if (stand_ins != nullptr) {
    revealed = stand_ins->reveal(text);
    text = revealed;
  }
  const auto split = pre_tokenizer.split(text);
  if (!split.ok()) return split.error();
  // Words repeat within a text: the ids of a piece seen before are copied from where they stand.
  struct Range {
    std::size_t begin, count;
  };
  std::unordered_map<std::string_view, Range> seen;
  Bpe::Scratch scratch;
  for (const TextSpan& span : split->pieces) {
    const std::string_view piece = std::string_view(split->text).substr(span.begin, span.size());
    const auto [known, fresh] = seen.try_emplace(piece, Range{ids.size(), 0});
    if (!fresh) {
      for (std::size_t i = 0; i < known->second.count; ++i) {
        const std::int32_t id = ids[known->second.begin + i];
        ids.push_back(id);
      }
      continue;
    }
    const auto whole = whole_pieces_first ? vocabulary.find(byte_level_encode(piece)) : std::nullopt;
    if (whole.has_value()) {
      ids.push_back(*whole);
    } else {
      bpe.encode_piece(piece, ids, scratch);
    }
    known->second.count = ids.size() - known->second.begin;
  }
  return {};
}

Result<Tokenizer> Tokenizer::load(const std::string& directory) {
  const std::string path = directory + "/tokenizer.json";
  const auto tokenizer_json = read_text_file(path);
  if (!tokenizer_json.ok()) return tokenizer_json.error();
  auto config = read_text_file(directory + "/tokenizer_config.json");
  if (!config.ok()) {
    if (config.error().kind != ErrorKind::kNotFound) return config.error();
    return parse(*tokenizer_json, {}, path);
  }
  if (config->empty()) {
    return fail(ErrorKind::kInvalidInput, "{}/tokenizer_config.json: is empty, expected a JSON object; fetch it again",
                directory);
  }
  return parse(*tokenizer_json, *config, path);
}

Result<Tokenizer> Tokenizer::parse(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                                   std::string_view name_for_errors) {
  const std::string_view file = name_for_errors;
  auto source = parse_tokenizer_json(tokenizer_json, file);
  if (!source.ok()) return source.error();
  const nlohmann::json& document = source->document;
  if (!document.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: is a {}, expected a JSON object", file, document.type_name());
  }
  auto state = std::make_shared<State>();
  const Status model = state->build_model(*source, file);
  if (!model.ok()) return model.error();
  auto normalizer = Normalizer::parse(entry_of(document, "normalizer"), file);
  if (!normalizer.ok()) return normalizer.error();
  state->normalizer = *normalizer;
  auto pre_tokenizer = PreTokenizer::parse(entry_of(document, "pre_tokenizer"), file);
  if (!pre_tokenizer.ok()) return pre_tokenizer.error();
  state->pre_tokenizer = std::move(*pre_tokenizer);
  const Status decoder = check_decoder(entry_of(document, "decoder"), file);
  if (!decoder.ok()) return decoder.error();
  const Status added = state->build_added_tokens(entry_of(document, "added_tokens"), file);
  if (!added.ok()) return added.error();

  const std::size_t slash = file.rfind('/');
  const std::string config_file =
      std::string(slash == std::string_view::npos ? "" : file.substr(0, slash + 1)) + "tokenizer_config.json";
  const auto config = parse_json_text(tokenizer_config_json.empty() ? "{}" : tokenizer_config_json, config_file);
  if (!config.ok()) return config.error();
  const auto sentence = read_sentence_tokens({.config = *config,
                                              .post_processor = entry_of(document, "post_processor"),
                                              .config_file = config_file,
                                              .tokenizer_file = file},
                                             state->vocabulary);
  if (!sentence.ok()) return sentence.error();
  state->sentence = *sentence;
  return Tokenizer(std::move(state));
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string replaced;
  if (!is_valid_utf8(text)) {
    replaced = replace_invalid_utf8(text);
    text = replaced;
  }
  std::vector<std::int32_t> ids;
  const Status encoded = state_->encode_raw(text, options, ids);
  if (!encoded.ok()) return encoded.error();
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
  if (!hidden.ok() || !state_->normalizer.changes_text()) return hidden;
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
  std::string bytes;
  for (const std::int32_t id : ids) {
    if (!skip_special || !is_special(id)) bytes.append(token_bytes(id));
  }
  return replace_invalid_utf8(bytes);
}

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
