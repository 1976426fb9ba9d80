#include "latte/text_codec.h"

#include <ctime>
#include <system_error>

#include "api/model_lookup.h"
#include "base/fail.h"
#include "decode/open_model.h"
#include "io/file_map.h"
#include "io/json_file.h"
#include "text/chat_messages.h"
#include "text/held_prefix.h"
#include "text/json_text.h"
#include "text/stand_ins.h"

namespace latte {
namespace {

using Ordered = nlohmann::ordered_json;

Result<Ordered> parse_part(const std::string& text, std::string_view name) {
  if (text.empty()) return Ordered(nullptr);
  return parse_ordered_json_text(text, name);
}

Result<ChatInput> parse_request(const ChatRequest& request) {
  Result<Ordered> messages = parse_ordered_json_text(request.messages, request.messages_name);
  if (!messages.ok()) return messages.error();
  Result<Ordered> tools = parse_part(request.tools, request.tools_name);
  if (!tools.ok()) return tools.error();
  Result<Ordered> kwargs = parse_part(request.kwargs, "kwargs");
  if (!kwargs.ok()) return kwargs.error();
  ChatInput input{.messages = std::move(*messages),
                  .tools = std::move(*tools),
                  .kwargs = std::move(*kwargs),
                  .add_generation_prompt = request.add_generation_prompt,
                  .now = std::nullopt,
                  .messages_name = request.messages_name,
                  .tools_name = request.tools_name};
  if (Status sound = check_messages(input); !sound.ok()) return sound.error();
  return input;
}

Result<std::string> render(const TextCodecState& state, const ChatInput& input) {
  if (!state.chat_template.has_value()) {
    return fail(ErrorKind::kNotFound,
                "{}: no chat template, expected one in tokenizer_config.json or chat_template.jinja: use the prompt as "
                "raw text",
                state.directory);
  }
  return render_messages(*state.chat_template, input);
}

/// `value` with every text and key hidden from special tokens. Tags such as <think> stay in what the assistant said:
/// the model wrote them as tokens and templates look for them.
Result<Ordered> hidden(const Tokenizer& tokenizer, const Ordered& value, bool keep_tags, StandIns& stand_ins) {
  if (value.is_string()) {
    Result<std::string> text = tokenizer.hide_tokens(value.get_ref<const std::string&>(), keep_tags, stand_ins);
    if (!text.ok()) return text.error();
    return Ordered(std::move(*text));
  }
  if (!value.is_structured()) return value;
  Ordered parts = value.is_array() ? Ordered::array() : Ordered::object();
  for (const auto& [key, item] : value.items()) {
    Result<Ordered> part = hidden(tokenizer, item, keep_tags, stand_ins);
    if (!part.ok()) return part.error();
    if (value.is_array()) {
      parts.push_back(std::move(*part));
      continue;
    }
    const Result<std::string> name = tokenizer.hide_tokens(key, keep_tags, stand_ins);
    if (!name.ok()) return name.error();
    parts[*name] = std::move(*part);
  }
  return parts;
}

/// A prompt in which what the messages say holds stand-ins.
struct HiddenPrompt {
  std::string text;
  StandIns stand_ins;
};

/// Renders the messages with stand-ins that no text in `avoided` holds.
Result<HiddenPrompt> render_hidden(const TextCodecState& state, ChatInput input, const std::string& avoided) {
  HiddenPrompt prompt;
  prompt.stand_ins.avoid(avoided);
  for (Ordered& message : input.messages) {
    const bool keep_tags = message.is_object() && message.contains("role") && message.at("role") == "assistant";
    Result<Ordered> safe = hidden(state.tokenizer, message, keep_tags, prompt.stand_ins);
    if (!safe.ok()) return safe.error();
    message = std::move(*safe);
  }
  Result<std::string> text = render(state, input);
  if (!text.ok()) return text.error();
  prompt.text = std::move(*text);
  return prompt;
}

/// Refuses ids that the model beside the tokenizer does not have; a folder without config.json holds no model.
Status fits_model(const TextCodecState& state) {
  const std::string path = state.directory + "/config.json";
  if (!name_exists(path)) return {};
  const Result<Json> config = read_json_file(path);
  if (!config.ok()) return config.error();
  if (!config->is_object()) return {};
  const auto text_config = config->find("text_config");
  const Json& model = text_config != config->end() && text_config->is_object() ? *text_config : *config;
  const auto vocab = model.find("vocab_size");
  if (vocab == model.end() || !vocab->is_number_integer()) return {};
  return check_ids(state.tokenizer, vocab->get<std::int64_t>());
}

std::string json_text(const Ordered& value) { return value.dump(-1, ' ', false, Ordered::error_handler_t::replace); }

/// The rendered prompt with special tokens hidden wherever a message spells one.
Result<HiddenPrompt> safe_prompt(const TextCodecState& state, const ChatRequest& request) {
  Result<ChatInput> input = parse_request(request);
  if (!input.ok()) return input.error();
  input->now = std::time(nullptr);
  const std::string given = json_text(input->messages) + json_text(input->tools) + json_text(input->kwargs);
  Result<HiddenPrompt> prompt = render_hidden(state, *input, given);
  if (!prompt.ok() || prompt->stand_ins.empty()) return prompt;
  // A template that writes a stand-in some other way, as an escape say, writes another text for other stand-ins.
  const Result<HiddenPrompt> other = render_hidden(state, *input, given + prompt->stand_ins.all());
  if (!other.ok()) return other.error();
  if (prompt->stand_ins.reveal(prompt->text) != other->stand_ins.reveal(other->text)) {
    return fail(ErrorKind::kInvalidInput,
                "[chat] a message holds the text of a special token and the template rewrites its characters, expected "
                "a message without one");
  }
  return prompt;
}

}  // namespace

Result<TextCodec> TextCodec::open(const std::string& model) {
  const Result<std::string> directory = find_model(model);
  if (!directory.ok()) return directory.error();
  Result<std::shared_ptr<const TextCodecState>> state = open_text(*directory);
  if (!state.ok()) return state.error();
  if (Status fit = fits_model(**state); !fit.ok()) return fit.error();
  return TextCodec(std::move(*state));
}

Result<std::vector<std::int32_t>> TextCodec::encode(std::string_view text, const EncodeChoice& choice) const {
  if (choice.add_bos && !state_->tokenizer.bos_id().has_value()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: no BOS token to begin with, expected a bos_token in tokenizer_config.json: do not ask for one",
                state_->tokenizer.file());
  }
  return state_->tokenizer.encode(text, {.match_special = choice.match_special, .add_bos = choice.add_bos});
}

Result<std::string> TextCodec::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  for (const std::int32_t id : ids) {
    if (state_->tokenizer.contains(id)) continue;
    return fail(ErrorKind::kInvalidInput, "{}: id {} has no token, expected ids below {}", state_->tokenizer.file(), id,
                state_->tokenizer.vocab_size());
  }
  return state_->tokenizer.decode(ids, skip_special);
}

bool TextCodec::adds_bos() const { return state_->tokenizer.adds_bos(); }
bool TextCodec::has_template() const { return state_->chat_template.has_value(); }

Result<std::string> TextCodec::apply_template(const ChatRequest& request) const {
  const Result<ChatInput> input = parse_request(request);
  if (!input.ok()) return input.error();
  return render(*state_, *input);
}

Result<std::vector<std::int32_t>> TextCodec::encode_chat(const ChatRequest& request) const {
  Result<ChatContinuation> whole = continue_chat(request, {});
  if (!whole.ok()) return whole.error();
  return std::move(whole->ids);
}

Result<ChatContinuation> TextCodec::continue_chat(const ChatRequest& request,
                                                  std::span<const std::int32_t> held) const {
  const Result<HiddenPrompt> prompt = safe_prompt(*state_, request);
  if (!prompt.ok()) return prompt.error();
  const StandIns* stand_ins = prompt->stand_ins.empty() ? nullptr : &prompt->stand_ins;
  Result<HeldPrefix> continued = continue_held(state_->tokenizer, prompt->text, stand_ins, held);
  if (!continued.ok()) return continued.error();
  return ChatContinuation{
      .ids = std::move(continued->ids), .kept = continued->kept, .reason = std::move(continued->reason)};
}

}  // namespace latte
