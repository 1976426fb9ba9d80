#include <sentencepiece_processor.h>

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/sentencepiece_proto.h"
#include "text/tokenizer_state.h"

namespace latte {
namespace {

using Piece = SentencePieceProto::Piece;
using Type = SentencePieceProto::Type;

// The library, given a model in which no added token is a piece that a text can spell.
class SentencePieceModel : public TextModel {
 public:
  static Result<std::unique_ptr<SentencePieceModel>> open(const SentencePieceProto& proto, std::string_view file) {
    auto model = std::make_unique<SentencePieceModel>();
    std::string reason;
    try {
      const auto status = model->processor_.LoadFromSerializedProto(proto.serialize());
      if (status.ok()) return model;
      reason = status.ToString();
    } catch (const std::exception& error) {
      reason = error.what();
    }
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    return fail(ErrorKind::kInvalidInput, "{}: the SentencePiece library refuses the model: {}", file, reason);
  }

  Status encode(std::string_view text, bool, std::vector<std::int32_t>& ids) const override {
    std::vector<int> found;
    const auto status = processor_.Encode(text, &found);
    if (!status.ok()) {
      return fail(ErrorKind::kInvalidInput, "the SentencePiece library refuses a text of {} bytes: {}", text.size(),
                  status.ToString());
    }
    ids.insert(ids.end(), found.begin(), found.end());
    return {};
  }

 private:
  sentencepiece::SentencePieceProcessor processor_;
};

// A symbol of spaces and line ends alone stays with the library: it is text, and matches as the library has it.
bool is_blank(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = text.starts_with(kMetaspaceText) ? kMetaspaceText.size()
                               : std::string_view(" \t\r\n").find(text.front()) != std::string_view::npos ? 1
                                                                                                          : 0;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

class Builder {
 public:
  Builder(const TokenizerSource& source, SentencePieceProto& proto, TokenizerState& state)
      : source_(source), proto_(proto), state_(state) {}

  Status run() {
    if (Status added = add_words(); !added.ok()) return added;
    if (Status added = add_tokens(); !added.ok()) return added;
    if (Status set = set_prefix(); !set.ok()) return set;
    auto model = SentencePieceModel::open(proto_, source_.file);
    if (!model.ok()) return model.error();
    state_.model = std::move(*model);
    return read_sentence();
  }

 private:
  Status add_words() {
    std::vector<std::pair<std::string, std::int64_t>> words;
    words.reserve(proto_.pieces.size());
    for (const Piece& piece : proto_.pieces) {
      words.emplace_back(piece.text, static_cast<std::int64_t>(words.size()));
    }
    const WordForm form = proto_.byte_fallback ? WordForm::kMetaspaceBytes : WordForm::kMetaspace;
    return state_.vocabulary.add_words(std::move(words), form, source_.file, "pieces");
  }

  // Tokens of the configuration, then control pieces and symbols of the model that it does not name. None of them
  // stays a piece that the library may find in a text.
  Status add_tokens() {
    const auto entry = source_.config.find("added_tokens_decoder");
    auto tokens = parse_added_tokens_decoder(entry == source_.config.end() ? nlohmann::json() : *entry,
                                             source_.config_file, kMaxTokenId);
    if (!tokens.ok()) return tokens.error();
    for (AddedToken& token : *tokens) token.normalized = false;
    if (Status added = state_.add_tokens(*tokens); !added.ok()) return added;
    for (std::size_t index = 0; index < proto_.pieces.size(); ++index) {
      Piece& piece = proto_.pieces[index];
      const auto id = static_cast<std::int32_t>(index);
      const bool symbol = piece.type == Type::kUserDefined && !is_blank(piece.text);
      const bool control = piece.type == Type::kControl || piece.type == Type::kUnknown;
      if (!state_.vocabulary.is_added(id) && (symbol || control)) {
        const AddedToken token{.id = id, .content = piece.text, .special = control, .normalized = symbol};
        if (Status added = state_.vocabulary.add_token(token, source_.file); !added.ok()) return added;
        (symbol ? state_.normalized_tokens : state_.raw_tokens).add(token, piece.text);
      }
      if (state_.vocabulary.is_added(id) && !control && piece.type != Type::kByte) piece.type = Type::kUnused;
    }
    return {};
  }

  // Who puts the space before a text: the library where it also trims spaces, the normalizer otherwise.
  Status set_prefix() {
    const auto legacy = json_bool(source_.config, "legacy", true, "(root)", source_.config_file);
    if (!legacy.ok()) return legacy.error();
    const auto prefix = json_bool(source_.config, "add_prefix_space", true, "(root)", source_.config_file);
    if (!prefix.ok()) return prefix.error();
    state_.decode_rules = {.strip_spaces = proto_.add_dummy_prefix ? 1 : 0, .replace_bytes = true};
    if (!proto_.add_dummy_prefix) return {};
    if (proto_.remove_extra_whitespaces) {
      if (*legacy && state_.normalized_tokens.empty()) return {};
      return fail(ErrorKind::kUnsupported, "{}: normalizer_spec.remove_extra_whitespaces is true, expected false {}",
                  source_.file,
                  *legacy ? "with symbols of the user" : "where tokenizer_config.json sets legacy to false");
    }
    proto_.add_dummy_prefix = false;
    if (*legacy || *prefix) {
      state_.normalizer = Normalizer::prepending(proto_.escape_whitespaces ? kMetaspaceText : " ", !*legacy);
    }
    return {};
  }

  // As LlamaTokenizer has it: <s> and </s> of the model unless the configuration names others, and <s> comes first
  // unless it says no.
  Status read_sentence() {
    nlohmann::json config = source_.config;
    const auto name = [&](const char* key, std::int32_t id) {
      const auto place = static_cast<std::size_t>(id);
      if (config.contains(key) || id < 0 || place >= proto_.pieces.size()) return;
      if (proto_.pieces[place].type == Type::kControl) config[key] = proto_.pieces[place].text;
    };
    name("bos_token", proto_.bos_id);
    name("eos_token", proto_.eos_id);
    const auto add = config.find("add_bos_token");
    if ((add == config.end() || add->is_null()) && config.contains("bos_token") && !config["bos_token"].is_null()) {
      config["add_bos_token"] = true;
    }
    const auto sentence = read_sentence_tokens({.config = config,
                                                .post_processor = nlohmann::json(),
                                                .config_file = source_.config_file,
                                                .tokenizer_file = source_.file},
                                               state_.vocabulary);
    if (!sentence.ok()) return sentence.error();
    state_.sentence = *sentence;
    return {};
  }

  const TokenizerSource& source_;
  SentencePieceProto& proto_;
  TokenizerState& state_;
};

}  // namespace

Result<std::shared_ptr<TokenizerState>> read_sentencepiece(const TokenizerSource& source) {
  auto proto = SentencePieceProto::parse(source.text, source.file);
  if (!proto.ok()) return proto.error();
  auto state = std::make_shared<TokenizerState>();
  state->file = source.file;
  if (Status built = Builder(source, *proto, *state).run(); !built.ok()) return built.error();
  return state;
}

}  // namespace latte
