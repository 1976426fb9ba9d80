#pragma once

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/error.h"

namespace latte {

/// What a conversation is rendered from.
struct ChatInput {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  nlohmann::ordered_json tools = nullptr;   ///< list of tool schemas, null for none
  nlohmann::ordered_json kwargs = nullptr;  ///< object of further names for the template, null for none; they win
  bool add_generation_prompt = true;        ///< end with the opening of the assistant's turn
  std::optional<std::time_t> now;           ///< for strftime_now; the clock when not set
  std::string messages_name = "messages";   ///< what errors call them: a file's name
  std::string tools_name = "tools";
};

/// The chat template of a model: the Jinja text that turns messages into a prompt. Output is byte for byte that of
/// transformers. Immutable, shared between threads.
class ChatTemplate {
 public:
  /// Reads a model folder: chat_template.jinja, else `chat_template` of tokenizer_config.json (a text, or a list of
  /// named ones). Special tokens such as bos_token come from tokenizer_config.json. kNotFound when the model has no
  /// template; other errors name the file and the template's line.
  static Result<ChatTemplate> load(const std::string& directory);

  /// The same from texts. `template_text` wins over the configuration's own template; empty for none.
  static Result<ChatTemplate> parse(std::string_view template_text, std::string_view tokenizer_config_json,
                                    std::string_view name_for_errors);

  /// The prompt of a conversation. With tools, the template named tool_use is taken where there is one. Errors: what
  /// the template refuses, with its line; wrong types of the input; a template beyond the bounds of jinja_runtime.h.
  Result<std::string> render(const ChatInput& input) const;

  /// The source text, of the default template.
  const std::string& source() const;

 private:
  struct State;

  explicit ChatTemplate(std::shared_ptr<const State> state) : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace latte
