#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "text/bpe_model.h"
#include "text/byte_level.h"
#include "text/decoder_entry.h"
#include "text/json_text.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_state.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte {
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
  return {};
}

// A tokenizer in the making.
struct Builder {
  TokenizerJson& source;
  std::string_view file;
  DecoderEntry decoder;
  TokenizerState& state;
  std::unique_ptr<BpeModel> model;

  const nlohmann::json& entry() const { return entry_of(source.document, "model"); }

  Status check_model();
  Status add_words();
  Status add_symbols();
  void add_characters(CharacterBpeModel& characters);
  Status read_unknown();
  Status add_added_tokens();
  Status add_merges();
  Status add_whole_words();
};

Status Builder::check_model() {
  if (!entry().is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: model is {}, expected an object with type BPE", file,
                entry().is_null() ? "missing" : with_article(entry().type_name()));
  }
  // Files of the first years leave the type out.
  const nlohmann::json& type = entry_of(entry(), "type");
  if (!type.is_null() && type != "BPE") {
    return fail(ErrorKind::kUnsupported, "{}: model.type {}, expected \"BPE\"; this tokenizer is not supported", file,
                type.is_string() ? quote_for_error(type.get_ref<const std::string&>()) : type.type_name());
  }
  if (!source.has_merges) {
    const auto merges = entry().find("merges");
    return fail(ErrorKind::kInvalidInput, "{}: model.merges is {}, expected a list", file,
                merges == entry().end() ? std::string("missing") : with_article(merges->type_name()));
  }
  return check_model_options(entry(), file);
}

Status Builder::add_words() {
  if (source.vocab.empty()) {
    return fail(ErrorKind::kInvalidInput, "{}: model.vocab is missing or empty, expected an object of tokens and ids",
                file);
  }
  const WordForm form = decoder.byte_level      ? WordForm::kByteLevel
                        : decoder.byte_fallback ? WordForm::kMetaspaceBytes
                                                : WordForm::kMetaspace;
  return state.vocabulary.add_words(std::move(source.vocab), form, file);
}

// What pieces are taken apart into: bytes or characters.
Status Builder::add_symbols() {
  const auto fallback = json_bool(entry(), "byte_fallback", false, "model", file);
  if (!fallback.ok()) return fallback.error();
  if (decoder.byte_level) {
    if (*fallback) {
      return fail(ErrorKind::kUnsupported, "{}: model.byte_fallback is true, expected false with a ByteLevel decoder",
                  file);
    }
    model = std::make_unique<BpeModel>();
    std::string character;
    for (int byte = 0; byte < 256; ++byte) {
      character.clear();
      append_utf8(character, byte_level_char(static_cast<unsigned char>(byte)));
      model->bpe.byte_ids[byte] = state.vocabulary.find(character).value_or(-1);
    }
    return {};
  }
  if (*fallback != decoder.byte_fallback) {
    return fail(ErrorKind::kUnsupported, "{}: model.byte_fallback is {}, expected what the decoder has ({})", file,
                *fallback, decoder.byte_fallback);
  }
  auto characters = std::make_unique<CharacterBpeModel>();
  characters->fallback_ids.fill(-1);
  for (int byte = 0; *fallback && byte < 256; ++byte) {
    characters->fallback_ids[byte] = state.vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  model = std::move(characters);
  return {};
}

// Words of one character, once it is known which of them are added tokens.
void Builder::add_characters(CharacterBpeModel& characters) {
  state.vocabulary.for_each_word([&](std::string_view word, std::int32_t id) {
    const Utf8Step step = word.empty() ? Utf8Step() : decode_utf8(word, 0);
    if (step.valid && step.length == word.size() && !state.vocabulary.is_special(id)) {
      characters.characters.emplace(step.code_point, id);
    }
  });
}

Status Builder::read_unknown() {
  Bpe& bpe = model->bpe;
  const nlohmann::json& unknown = entry_of(entry(), "unk_token");
  if (!unknown.is_null()) {
    if (unknown.is_string()) bpe.unknown_id = state.vocabulary.find(unknown.get_ref<const std::string&>());
    if (!bpe.unknown_id.has_value()) {
      return fail(ErrorKind::kInvalidInput, "{}: model.unk_token is no token of model.vocab, expected one or null",
                  file);
    }
  }
  const auto fuse = json_bool(entry(), "fuse_unk", false, "model", file);
  if (!fuse.ok()) return fuse.error();
  bpe.fuse_unknown = *fuse;
  return {};
}

Status Builder::add_added_tokens() {
  auto tokens = parse_added_tokens(entry_of(source.document, "added_tokens"), file, kMaxTokenId);
  if (!tokens.ok()) return tokens.error();
  return state.add_tokens(*tokens);
}

// Merges that would spell an added token are left out: only the token's own match may give its id.
Status Builder::add_merges() {
  const Vocabulary& vocabulary = state.vocabulary;
  model->bpe.reserve_merges(source.merges.size());
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
    if (!vocabulary.is_special(*merged_id)) {
      model->bpe.add_merge(*left_id, *right_id, {.rank = rank, .merged = *merged_id});
    }
    ++rank;
  }
  return {};
}

Status Builder::add_whole_words() {
  const auto ignore_merges = json_bool(entry(), "ignore_merges", false, "model", file);
  if (!ignore_merges.ok()) return ignore_merges.error();
  if (!*ignore_merges) return {};
  state.vocabulary.for_each_word([&](std::string_view word, std::int32_t id) {
    if (state.vocabulary.is_added(id)) return;
    model->whole_words.emplace(decoder.byte_level ? byte_level_decode(word) : std::string(word), id);
  });
  return {};
}

}  // namespace

Result<std::shared_ptr<TokenizerState>> read_json_tokenizer(const TokenizerSource& source) {
  const std::string_view file = source.file;
  auto parsed = parse_tokenizer_json(source.text, file);
  if (!parsed.ok()) return parsed.error();
  const nlohmann::json& document = parsed->document;
  if (!document.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: is {}, expected a JSON object", file,
                with_article(document.type_name()));
  }
  auto state = std::make_shared<TokenizerState>();
  state->file = file;
  Builder builder{.source = *parsed, .file = file, .decoder = {}, .state = *state, .model = nullptr};
  if (Status checked = builder.check_model(); !checked.ok()) return checked.error();
  const auto decoder = parse_decoder(entry_of(document, "decoder"), file);
  if (!decoder.ok()) return decoder.error();
  builder.decoder = *decoder;
  state->decode_rules = {.strip_spaces = decoder->strip_spaces, .replace_bytes = decoder->byte_fallback};
  auto normalizer = Normalizer::parse(entry_of(document, "normalizer"), file);
  if (!normalizer.ok()) return normalizer.error();
  state->normalizer = std::move(*normalizer);
  auto pre_tokenizer = PreTokenizer::parse(entry_of(document, "pre_tokenizer"), decoder->byte_level, file);
  if (!pre_tokenizer.ok()) return pre_tokenizer.error();

  if (Status added = builder.add_words(); !added.ok()) return added.error();
  if (Status added = builder.add_symbols(); !added.ok()) return added.error();
  builder.model->pre_tokenizer = std::move(*pre_tokenizer);
  for (const auto step :
       {&Builder::read_unknown, &Builder::add_added_tokens, &Builder::add_merges, &Builder::add_whole_words}) {
    if (Status done = (builder.*step)(); !done.ok()) return done.error();
  }
  if (auto* characters = dynamic_cast<CharacterBpeModel*>(builder.model.get())) builder.add_characters(*characters);
  state->model = std::move(builder.model);
  const auto sentence = read_sentence_tokens({.config = source.config,
                                              .post_processor = entry_of(document, "post_processor"),
                                              .config_file = source.config_file,
                                              .tokenizer_file = file},
                                             state->vocabulary);
  if (!sentence.ok()) return sentence.error();
  state->sentence = *sentence;
  return state;
}

}  // namespace latte
