// Feeds a chat template and the names it speaks of, a JSON object cut from the input at a byte FF, to the parser and
// the renderer. Rendering the same again gives the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/contract.h"
#include "text/chat_template.h"
#include "text/json_text.h"
#include "text/utf8.h"
#include "try_tokenizer.h"

namespace {

using Json = nlohmann::ordered_json;

Json default_names() {
  return Json::parse(
      R"({"n": 7, "f": 2.5, "s": "Hello World", "u": "\u65e5\u672c na\u00efve", "l": [3, 1, 2, 10], "e": [],
      "t": true, "none_value": null, "d": {"b": 1, "a": [1, 2.5, null, true, "x'y"], "c": {"z": "\u00fc"}},
      "words": ["b", "A", "c"], "people": [{"name": "Ann", "age": 30}, {"name": "bob", "age": 25}]})");
}

latte::ChatInput conversation() {
  latte::ChatInput input;
  input.messages = Json::parse(R"([{"role": "system", "content": "Be brief."},
      {"role": "user", "content": [{"type": "text", "text": "q \u00e9"}, {"type": "text", "text": " <b>"}]},
      {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [
        {"id": "c1", "function": {"name": "f", "arguments": {"x": [1, 2.5, null]}}}]},
      {"role": "tool", "content": "{\"t\": 3}"}])");
  input.tools = Json::parse(R"([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}])");
  input.now = 0;
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = text.find('\xFF');
  const std::string_view source = text.substr(0, cut);
  if (source.empty()) return 0;
  const auto parsed = latte::ChatTemplate::parse(source, "", "chat_template.jinja");
  if (!parsed.ok()) {
    latte::expect_one_line(parsed.error());
    return 0;
  }
  static const latte::ChatInput kConversation = conversation();
  static const Json kNames = default_names();
  latte::ChatInput input = kConversation;
  input.kwargs = kNames;
  if (cut != std::string_view::npos) {
    auto names = latte::parse_ordered_json_text(text.substr(cut + 1), "names");
    if (names.ok() && names->is_object()) input.kwargs = std::move(*names);
  }
  const auto once = parsed->render(input);
  const auto again = parsed->render(input);
  latte::expects(once.ok() == again.ok(), "rendering twice ends alike");
  if (!once.ok()) {
    latte::expect_one_line(once.error());
    return 0;
  }
  latte::expects(*once == *again && latte::is_valid_utf8(*once), "a template renders valid UTF-8, the same each time");
  return 0;
}
