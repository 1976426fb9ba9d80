// Feeds a tokenizer.json, a tokenizer_config.json and a chat template, cut from the input at two bytes FF, to their
// readers; what loads then encodes, decodes and renders a short text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/contract.h"
#include "text/chat_template.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace {

// FF stands in no valid JSON, so a cut never falls inside of a part that could be read.
std::string_view take_part(std::string_view& rest) {
  const std::size_t cut = rest.find('\xFF');
  const std::string_view part = rest.substr(0, cut);
  rest.remove_prefix(cut == std::string_view::npos ? rest.size() : cut + 1);
  return part;
}

void expect_one_line(const latte::Error& error) {
  latte::expects(!error.message.empty() && error.message.find('\n') == std::string::npos, "an error is one line");
}

void try_tokenizer(std::string_view tokenizer_json, std::string_view config_json) {
  const auto tokenizer = latte::Tokenizer::parse(tokenizer_json, config_json, "tokenizer.json");
  if (!tokenizer.ok()) return expect_one_line(tokenizer.error());
  static constexpr std::string_view kText =
      "<s>Hi 12 caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xF0\x9F\x98\x80\xFF a  b\r\n\tx!</s>";
  for (const bool match_special : {false, true}) {
    const auto ids = tokenizer->encode(kText, {.match_special = match_special, .add_bos = match_special});
    if (!ids.ok()) {
      expect_one_line(ids.error());
      continue;
    }
    latte::StreamDecoder stream(*tokenizer);
    std::string text;
    for (const std::int32_t id : *ids) {
      latte::expects(tokenizer->contains(id), "encoding gives ids that have tokens");
      text += stream.push(id);
    }
    text += stream.finish();
    latte::expects(text == tokenizer->decode(*ids), "a stream gives the text of its ids");
    latte::expects(latte::is_valid_utf8(text), "decoding gives valid UTF-8");
  }
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
  if (!parsed.ok()) return expect_one_line(parsed.error());
  static const latte::ChatInput kConversation = conversation();
  const auto text = parsed->render(kConversation);
  if (!text.ok()) expect_one_line(text.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view tokenizer_json = take_part(rest);
  const std::string_view config_json = take_part(rest);
  if (!tokenizer_json.empty()) try_tokenizer(tokenizer_json, config_json);
  if (!rest.empty() || config_json.find("chat_template") != std::string_view::npos) try_template(rest, config_json);
  return 0;
}
