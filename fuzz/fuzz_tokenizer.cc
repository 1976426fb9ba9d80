// Feeds a tokenizer.json, a tokenizer_config.json and a chat template, cut from the input at two bytes FF, to their
// readers; what loads then encodes, decodes and renders a short text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/chat_template.h"
#include "text/json_text.h"
#include "try_tokenizer.h"

namespace {

// FF stands in no valid JSON, so a cut never falls inside of a part that could be read.
std::string_view take_part(std::string_view& rest) {
  const std::size_t cut = rest.find('\xFF');
  const std::string_view part = rest.substr(0, cut);
  rest.remove_prefix(cut == std::string_view::npos ? rest.size() : cut + 1);
  return part;
}

void try_file(std::string_view tokenizer_json, std::string_view config_json) {
  const auto tokenizer = latte::Tokenizer::parse(tokenizer_json, config_json, "tokenizer.json");
  if (!tokenizer.ok()) return latte::expect_one_line(tokenizer.error());
  // The unknown token may be any; a file names it.
  std::optional<std::int32_t> unknown;
  const auto document = latte::parse_json_text(tokenizer_json, "tokenizer.json");
  if (document.ok()) {
    const auto name = document->at("model").value("unk_token", nlohmann::json());
    if (name.is_string()) unknown = tokenizer->token_to_id(name.get<std::string>());
  }
  latte::try_tokenizer(*tokenizer, unknown);
}

// The names that the seeds speak of.
latte::ChatInput conversation() {
  latte::ChatInput input;
  input.messages = nlohmann::ordered_json::parse(R"([{"role": "system", "content": "Be brief."},
      {"role": "user", "content": "q \u00e9"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "n": 3}]}])");
  input.kwargs = nlohmann::ordered_json::parse(
      R"({"d": {"b": 1, "a": [1, 2.5, null, true, "x'y"], "c": {"z": "\u00fc", "items": 7}},
      "n": 7, "f": 2.5, "s": "Hello World", "u": "\u65e5\u672c na\u00efve", "l": [3, 1, 2, 10], "e": [], "t": true,
      "none_value": null, "big": 12345678901234567, "floats": [1.0, 1e16, 1e-5], "words": ["b", "A", "c"],
      "people": [{"name": "Ann", "age": 30, "j": {"t": "x"}}, {"name": "bob", "age": 25}], "esc": "tab\t q\" \u0001",
      "spaces": "  pad "})");
  input.now = 0;
  return input;
}

void try_template(std::string_view source, std::string_view config_json) {
  const auto parsed = latte::ChatTemplate::parse(source, config_json, "tokenizer_config.json");
  if (!parsed.ok()) return latte::expect_one_line(parsed.error());
  static const latte::ChatInput kConversation = conversation();
  const auto text = parsed->render(kConversation);
  if (!text.ok()) latte::expect_one_line(text.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view tokenizer_json = take_part(rest);
  const std::string_view config_json = take_part(rest);
  if (!tokenizer_json.empty()) try_file(tokenizer_json, config_json);
  if (!rest.empty() || config_json.find("chat_template") != std::string_view::npos) try_template(rest, config_json);
  return 0;
}
