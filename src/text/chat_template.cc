#include "text/chat_template.h"

#include <limits>

#include "base/fail.h"
#include "text/jinja_eval.h"
#include "text/jinja_parser.h"
#include "text/jinja_runtime.h"
#include "text/json_text.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;

struct NamedTemplate {
  std::string name;
  std::string source;
  jinja::Ast ast;
};

Result<jinja::Value> to_value(const Json& json, int depth) {
  if (depth > kMaxJsonDepth) {
    return fail(ErrorKind::kInvalidInput, "messages or tools nested deeper than {} levels", kMaxJsonDepth);
  }
  switch (json.type()) {
    case Json::value_t::null:
      return jinja::Value(nullptr);
    case Json::value_t::boolean:
      return jinja::Value(json.get<bool>());
    case Json::value_t::number_integer:
      return jinja::Value(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return fail(ErrorKind::kInvalidInput, "the number {} in messages or tools, expected at most {}", json.dump(),
                    std::numeric_limits<std::int64_t>::max());
      }
      return jinja::Value(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return jinja::Value(json.get<double>());
    case Json::value_t::string:
      return jinja::Value(replace_invalid_utf8(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      auto list = std::make_shared<jinja::List>();
      for (const Json& item : json) {
        auto value = to_value(item, depth + 1);
        if (!value.ok()) return value.error();
        list->depth = std::max(list->depth, 1 + value->depth());
        list->items.push_back(std::move(*value));
      }
      return jinja::Value(std::shared_ptr<const jinja::List>(std::move(list)));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<jinja::Dict>();
      for (const auto& [key, item] : json.items()) {
        auto value = to_value(item, depth + 1);
        if (!value.ok()) return value.error();
        dict->set_text(replace_invalid_utf8(key), std::move(*value));
      }
      return jinja::Value(std::shared_ptr<const jinja::Dict>(std::move(dict)));
    }
    default:
      return fail(ErrorKind::kInvalidInput, "{} in messages or tools, expected JSON", with_article(json.type_name()));
  }
}

// A template of tokenizer_config.json or a file, parsed.
Status add_template(std::string name, std::string_view source, std::string_view file,
                    std::vector<NamedTemplate>& templates) {
  NamedTemplate entry{std::move(name), replace_invalid_utf8(source), {}};
  auto ast = jinja::parse_template(entry.source);
  if (!ast.ok()) return fail(ErrorKind::kInvalidInput, "{}: {}", file, ast.error().message);
  entry.ast = std::move(*ast);
  templates.push_back(std::move(entry));
  return {};
}

Status add_configured(const nlohmann::json& entry, std::string_view file, std::vector<NamedTemplate>& templates) {
  const std::string source = fmt::format("{}: chat_template", file);
  if (entry.is_null()) return {};
  if (entry.is_string()) return add_template("default", entry.get_ref<const std::string&>(), source, templates);
  if (!entry.is_array()) {
    return fail(ErrorKind::kInvalidInput, "{} is {}, expected a text or a list of named texts", source,
                with_article(entry.type_name()));
  }
  for (const nlohmann::json& member : entry) {
    if (!member.is_object() || !member.contains("name") || !member.at("name").is_string() ||
        !member.contains("template") || !member.at("template").is_string()) {
      return fail(ErrorKind::kInvalidInput, "{}: an entry is no object with \"name\" and \"template\" texts", source);
    }
    const auto name = member.at("name").get<std::string>();
    const Status added = add_template(name, member.at("template").get_ref<const std::string&>(),
                                      fmt::format("{} {}", source, quote_for_error(name)), templates);
    if (!added.ok()) return added;
  }
  return {};
}

}  // namespace

struct ChatTemplate::State {
  std::string file;
  std::vector<NamedTemplate> templates;
  std::vector<std::pair<std::string, jinja::Value>> special_tokens;

  const NamedTemplate* find(std::string_view name) const {
    for (const NamedTemplate& entry : templates) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }

  const NamedTemplate& chosen(bool with_tools) const {
    const NamedTemplate* tool_use = with_tools ? find("tool_use") : nullptr;
    if (tool_use != nullptr) return *tool_use;
    const NamedTemplate* standard = find("default");
    return standard != nullptr ? *standard : templates.front();
  }

  void read_special_tokens(const nlohmann::json& config) {
    for (const char* key :
         {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
      const auto entry = config.find(key);
      if (entry == config.end()) continue;
      const nlohmann::json* content = &*entry;
      if (entry->is_object() && entry->contains("content")) content = &entry->at("content");
      if (content->is_string()) special_tokens.emplace_back(key, content->get<std::string>());
    }
  }
};

Result<ChatTemplate> ChatTemplate::load(const std::string& directory) {
  const std::string template_path = directory + "/chat_template.jinja";
  auto source = read_text_file(template_path);
  if (!source.ok() && source.error().kind != ErrorKind::kNotFound) return source.error();
  if (source.ok() && source->empty()) {
    return fail(ErrorKind::kInvalidInput, "{}: is empty, expected a chat template; fetch it again", template_path);
  }
  const std::string config_path = directory + "/tokenizer_config.json";
  auto config = read_text_file(config_path);
  if (!config.ok() && config.error().kind != ErrorKind::kNotFound) return config.error();
  if (!config.ok() && !source.ok()) return config.error();
  return parse(source.ok() ? *source : std::string(), config.ok() ? *config : std::string("{}"),
               source.ok() ? template_path : config_path);
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view template_text, std::string_view tokenizer_config_json,
                                         std::string_view name_for_errors) {
  auto state = std::make_shared<State>();
  state->file = name_for_errors;
  const auto config = parse_json_text(tokenizer_config_json.empty() ? "{}" : tokenizer_config_json, name_for_errors);
  if (!config.ok()) return config.error();
  if (!config->is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: the configuration is {}, expected a JSON object", name_for_errors,
                with_article(config->type_name()));
  }
  state->read_special_tokens(*config);
  const auto configured = config->find("chat_template");
  Status added;
  if (!template_text.empty()) {
    added = add_template("default", template_text, name_for_errors, state->templates);
  } else if (configured != config->end()) {
    added = add_configured(*configured, name_for_errors, state->templates);
  }
  if (!added.ok()) return added.error();
  if (state->templates.empty()) {
    return fail(ErrorKind::kNotFound, "{}: the model has no chat template; give the prompt as it is (--raw)",
                name_for_errors);
  }
  if (state->templates.size() > 1 && state->find("default") == nullptr) {
    return fail(ErrorKind::kInvalidInput, "{}: chat_template lists several templates, expected one named default",
                name_for_errors);
  }
  return ChatTemplate(std::move(state));
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  if (!input.messages.is_array()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}, expected a list of messages", input.messages_name,
                with_article(input.messages.type_name()));
  }
  for (std::size_t i = 0; i < input.messages.size(); ++i) {
    if (input.messages[i].is_object()) continue;
    return fail(ErrorKind::kInvalidInput, "{}: message {} is {}, expected an object with \"role\" and \"content\"",
                input.messages_name, i, with_article(input.messages[i].type_name()));
  }
  if (!input.tools.is_null() && !input.tools.is_array()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}, expected a list of tools", input.tools_name,
                with_article(input.tools.type_name()));
  }
  if (!input.kwargs.is_null() && !input.kwargs.is_object()) {
    return fail(ErrorKind::kInvalidInput, "template arguments are {}, expected an object",
                with_article(input.kwargs.type_name()));
  }
  jinja::RenderInput context;
  context.now = input.now.has_value() ? *input.now : std::time(nullptr);
  context.names = state_->special_tokens;
  auto messages = to_value(input.messages, 0);
  if (!messages.ok()) return fail(messages.error().kind, "{}: {}", input.messages_name, messages.error().message);
  auto tools = to_value(input.tools, 0);
  if (!tools.ok()) return fail(tools.error().kind, "{}: {}", input.tools_name, tools.error().message);
  context.names.emplace_back("messages", std::move(*messages));
  context.names.emplace_back("tools", std::move(*tools));
  context.names.emplace_back("documents", nullptr);
  context.names.emplace_back("add_generation_prompt", input.add_generation_prompt);
  if (input.kwargs.is_object()) {
    for (const auto& [name, item] : input.kwargs.items()) {
      auto value = to_value(item, 0);
      if (!value.ok()) return value.error();
      context.names.emplace_back(name, std::move(*value));
    }
  }
  auto text = jinja::render(state_->chosen(!input.tools.is_null()).ast, context);
  if (!text.ok()) return fail(text.error().kind, "{}: chat template {}", state_->file, text.error().message);
  return text;
}

const std::string& ChatTemplate::source() const { return state_->chosen(false).source; }

}  // namespace latte
