#include "latte/text_codec.h"

#include <algorithm>
#include <array>

#include "api/model_lookup.h"
#include "base/fail.h"
#include "decode/open_model.h"
#include "text/json_text.h"

namespace latte {
namespace {

using Ordered = nlohmann::ordered_json;

Result<Ordered> parse_part(const std::string& text, std::string_view name) {
  if (text.empty()) return Ordered(nullptr);
  return parse_ordered_json_text(text, name);
}

Result<ChatInput> parse_request(const ChatRequest& request) {
  Result<Ordered> messages = parse_ordered_json_text(request.messages, "messages");
  if (!messages.ok()) return messages.error();
  Result<Ordered> tools = parse_part(request.tools, "tools");
  if (!tools.ok()) return tools.error();
  Result<Ordered> kwargs = parse_part(request.kwargs, "kwargs");
  if (!kwargs.ok()) return kwargs.error();
  return ChatInput{.messages = std::move(*messages),
                   .tools = std::move(*tools),
                   .kwargs = std::move(*kwargs),
                   .add_generation_prompt = request.add_generation_prompt,
                   .now = std::nullopt};
}

Result<std::string> render(const TextCodecState& state, const ChatInput& input) {
  if (!state.chat_template.has_value()) {
    return fail(ErrorKind::kNotFound,
                "{}: no chat template, expected one in tokenizer_config.json or chat_template.jinja: use the prompt as "
                "raw text",
                state.directory);
  }
  return state.chat_template->render(input);
}

/// Two characters of the private use area that `text` does not hold, as UTF-8.
std::array<std::string, 2> absent_marks(std::string_view text) {
  std::array<std::string, 2> marks;
  std::size_t found = 0;
  for (unsigned code = 0xE000; code < 0xF8FF && found < marks.size(); ++code) {
    const std::string mark = {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
                              static_cast<char>(0x80 | (code & 0x3F))};
    if (text.find(mark) == std::string_view::npos) marks[found++] = mark;
  }
  return marks;
}

/// Puts marks around every text in `value` that holds the spelling of a special token. True when there was one.
Result<bool> mark_forgeries(const Tokenizer& tokenizer, const std::array<std::string, 2>& marks, Ordered& value) {
  bool any = false;
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    const auto plain = tokenizer.encode(text, {.match_special = false, .add_bos = false});
    const auto special = tokenizer.encode(text, {.match_special = true, .add_bos = false});
    if (!plain.ok()) return plain.error();
    if (!special.ok()) return special.error();
    if (*plain == *special) return false;
    text = marks[0] + text + marks[1];
    return true;
  }
  if (!value.is_structured()) return false;
  for (auto& [key, part] : value.items()) {
    if (key == "role") continue;
    const Result<bool> marked = mark_forgeries(tokenizer, marks, part);
    if (!marked.ok()) return marked.error();
    any = any || *marked;
  }
  return any;
}

/// Ids of a rendered prompt: inside the marks special tokens are text, outside they are tokens.
Result<std::vector<std::int32_t>> encode_marked(const Tokenizer& tokenizer, const std::array<std::string, 2>& marks,
                                                std::string_view text) {
  std::vector<std::int32_t> ids;
  bool inside = false;
  while (true) {
    const std::size_t end = text.find(marks[inside ? 1 : 0]);
    const auto part = tokenizer.encode(text.substr(0, end), {.match_special = !inside, .add_bos = false});
    if (!part.ok()) return part.error();
    ids.insert(ids.end(), part->begin(), part->end());
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + marks[0].size());
    inside = !inside;
  }
  if (inside) {
    return fail(ErrorKind::kInvalidInput,
                "[chat] a message holds the text of a special token and the template cuts messages apart, expected one "
                "without");
  }
  return ids;
}

}  // namespace

Result<TextCodec> TextCodec::open(const std::string& model) {
  const Result<std::string> directory = find_model(model);
  if (!directory.ok()) return directory.error();
  Result<std::shared_ptr<const TextCodecState>> state = open_text(*directory);
  if (!state.ok()) return state.error();
  return TextCodec(std::move(*state));
}

Result<std::vector<std::int32_t>> TextCodec::encode(std::string_view text, const EncodeChoice& choice) const {
  return state_->tokenizer.encode(text, {.match_special = choice.match_special, .add_bos = choice.add_bos});
}

Result<std::string> TextCodec::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  for (const std::int32_t id : ids) {
    if (state_->tokenizer.contains(id)) continue;
    return fail(ErrorKind::kInvalidInput, "{}/tokenizer.json: id {} has no token, expected ids below {}",
                state_->directory, id, state_->tokenizer.vocab_size());
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
  Result<ChatInput> input = parse_request(request);
  if (!input.ok()) return input.error();
  const std::array<std::string, 2> marks =
      absent_marks(input->messages.dump(-1, ' ', false, Ordered::error_handler_t::replace));
  const Result<bool> forged = mark_forgeries(state_->tokenizer, marks, input->messages);
  if (!forged.ok()) return forged.error();
  const Result<std::string> prompt = render(*state_, *input);
  if (!prompt.ok()) return prompt.error();
  if (!*forged) return state_->tokenizer.encode(*prompt, {.match_special = true, .add_bos = false});
  return encode_marked(state_->tokenizer, marks, *prompt);
}

}  // namespace latte
