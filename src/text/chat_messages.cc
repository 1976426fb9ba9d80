#include "text/chat_messages.h"

#include <algorithm>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/type_words.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;

const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

std::string arrived(const Json* value) { return value == nullptr ? "nothing" : with_article(value->type_name()); }

const std::string* text_of(const Json* value) {
  return value != nullptr && value->is_string() ? &value->get_ref<const std::string&>() : nullptr;
}

/// The type of a part of a list; nothing when it is no part.
const std::string* part_type(const Json& part) { return part.is_object() ? text_of(member(part, "type")) : nullptr; }

bool is_text_part(const Json& part) {
  const std::string* type = part_type(part);
  return type != nullptr && *type == "text";
}

Status check_parts(const Json& parts, const std::string& place) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string* type = part_type(parts[i]);
    if (type == nullptr) {
      return fail(ErrorKind::kInvalidInput,
                  "{}: content part {} is {}, expected an object with a type, such as {{\"type\": \"text\", \"text\": "
                  "\"...\"}}",
                  place, i, parts[i].is_object() ? "an object without one" : with_article(parts[i].type_name()));
    }
    if (*type == "text" && text_of(member(parts[i], "text")) == nullptr) {
      return fail(ErrorKind::kInvalidInput, "{}: content part {} has {} as \"text\", expected a string", place, i,
                  arrived(member(parts[i], "text")));
    }
  }
  return {};
}

Status check_message(const Json& message, const std::string& place) {
  if (!message.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{} is {}, expected an object with \"role\" and \"content\"", place,
                with_article(message.type_name()));
  }
  const Json* role = member(message, "role");
  if (text_of(role) == nullptr || text_of(role)->empty()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: role: arrived {}, expected a text such as \"system\", \"user\" or \"assistant\"", place,
                text_of(role) == nullptr ? arrived(role) : "an empty text");
  }
  const Json* content = member(message, "content");
  if (content != nullptr && content->is_array()) return check_parts(*content, place);
  const bool absent = content == nullptr || content->is_null();
  if (text_of(content) != nullptr || (absent && *text_of(role) == "assistant")) return {};
  return fail(ErrorKind::kInvalidInput,
              "{}: content: arrived {}, expected a text, or a list of parts like "
              "{{\"type\": \"text\", \"text\": \"...\"}}",
              place, arrived(content));
}

std::string joined(const Json& parts) {
  std::string text;
  for (const Json& part : parts) text += part.at("text").get_ref<const std::string&>();
  return text;
}

bool holds_trimmed(const std::string& text, const std::string& part) {
  const std::size_t first = part.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return true;
  return text.find(part.substr(first, part.find_last_not_of(" \t\r\n") + 1 - first)) != std::string::npos;
}

/// Whether a template that was given lists of parts wrote what they say: it neither printed a list as a value nor left
/// a text out.
bool wrote_parts(const std::string& text, const ChatInput& input, const ChatTemplate& printer) {
  for (const Json& message : input.messages) {
    const Json* content = member(message, "content");
    if (content == nullptr || !content->is_array()) continue;
    ChatInput one;
    one.messages = Json::array({message});
    const Result<std::string> printed = printer.render(one);
    if (printed.ok() && text.find(*printed) != std::string::npos) return false;
    for (const Json& part : *content) {
      if (is_text_part(part) && !holds_trimmed(text, part.at("text").get_ref<const std::string&>())) return false;
    }
  }
  return true;
}

}  // namespace

Status check_messages(const ChatInput& input) {
  if (!input.messages.is_array()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}, expected a list of messages", input.messages_name,
                with_article(input.messages.type_name()));
  }
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    const Status message = check_message(input.messages[i], fmt::format("{}: message {}", input.messages_name, i));
    if (!message.ok()) return message;
  }
  return {};
}

Result<std::string> render_messages(const ChatTemplate& chat_template, const ChatInput& input) {
  Result<std::string> text = chat_template.render(input);
  const auto has_parts = [](const Json& message) {
    const Json* content = member(message, "content");
    return content != nullptr && content->is_array();
  };
  if (std::none_of(input.messages.begin(), input.messages.end(), has_parts)) return text;
  const Result<ChatTemplate> printer = ChatTemplate::parse("{{ messages[0].content }}", "", "content");
  if (!printer.ok()) return printer.error();
  if (text.ok() && wrote_parts(*text, input, *printer)) return text;

  ChatInput plain = input;
  for (std::size_t i = 0; i < plain.messages.size(); ++i) {
    if (!has_parts(plain.messages[i])) continue;
    Json& content = plain.messages[i]["content"];
    for (std::size_t part = 0; part < content.size(); ++part) {
      if (is_text_part(content[part])) continue;
      return fail(ErrorKind::kInvalidInput,
                  "{}: message {}: content part {} is of type {}, expected text: the model's chat template takes no "
                  "other",
                  input.messages_name, i, part, quote_for_error(*part_type(content[part])));
    }
    content = joined(content);
  }
  return chat_template.render(plain);
}

}  // namespace latte
