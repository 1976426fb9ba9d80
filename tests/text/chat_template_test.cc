#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>

#include "support/sanitizers.h"
#include "text/text_data.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;

Result<std::string> render(const std::string& source, const Json& names = Json::object(), std::time_t now = 0) {
  const auto parsed = ChatTemplate::parse(source, "", "chat_template.jinja");
  if (!parsed.ok()) return parsed.error();
  ChatInput input;
  input.kwargs = names;
  input.now = now;
  return parsed->render(input);
}

std::string render_error(const std::string& source) {
  const auto text = render(source);
  return text.ok() ? "rendered: " + text->substr(0, 100) : text.error().message;
}

TEST(ChatTemplate, SnippetsRenderAsJinja) {
  const Json golden = test::repo_json("template/snippets.json");
  std::tm time{};
  ASSERT_NE(strptime(golden["now"].get<std::string>().c_str(), "%Y-%m-%d %H:%M:%S", &time), nullptr);
  time.tm_isdst = -1;
  const std::time_t now = std::mktime(&time);
  for (const Json& snippet : golden["snippets"]) {
    const auto text = render(snippet["source"], golden["names"], now);
    if (snippet.contains("error")) {
      EXPECT_FALSE(text.ok()) << snippet.dump() << "\n" << (text.ok() ? *text : "");
      if (!text.ok()) {
        EXPECT_EQ(text.error().message.find('\n'), std::string::npos) << text.error().message;
        EXPECT_NE(text.error().message.find("line "), std::string::npos) << text.error().message;
      }
    } else {
      EXPECT_EQ(text.ok() ? *text : text.error().message, snippet["output"].get<std::string>()) << snippet["source"];
    }
  }
}

class ChatTemplateFolder : public ::testing::TestWithParam<const char*> {};

TEST_P(ChatTemplateFolder, RendersConversationsAsTransformers) {
  const std::string root = test::large_data_root();
  if (root.empty()) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the tokenizer folders are not at hand";
  const Json golden = test::repo_json(std::string("template/") + GetParam() + ".json");
  const auto loaded = ChatTemplate::load(root + "/" + golden["folder"].get<std::string>());
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  for (const Json& entry : golden["cases"]) {
    const Json& conversation = entry["conversation"];
    ChatInput input;
    input.messages = conversation["messages"];
    if (conversation.contains("tools")) input.tools = conversation["tools"];
    if (conversation.contains("kwargs")) input.kwargs = conversation["kwargs"];
    input.add_generation_prompt = entry["add_generation_prompt"];
    const auto text = loaded->render(input);
    ASSERT_EQ(text.ok(), entry.contains("output")) << entry["name"] << (text.ok() ? *text : text.error().message);
    if (!text.ok()) continue;
    EXPECT_EQ(*text, entry["output"].get<std::string>()) << entry["name"];
  }
}

INSTANTIATE_TEST_SUITE_P(ChatTemplate, ChatTemplateFolder, ::testing::Values("deepseek-v3", "qwen3"),
                         [](const auto& folder) {
                           std::string name = folder.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ChatTemplate, FamilyTemplatesRenderAsJinja) {
  const Json golden = test::repo_json("template/families.json");
  for (const Json& entry : golden["templates"]) {
    const auto parsed = ChatTemplate::parse(entry["source"].get<std::string>(), "", "chat_template.jinja");
    ASSERT_TRUE(parsed.ok()) << entry["name"] << parsed.error().message;
    for (const Json& expected : entry["cases"]) {
      const Json& conversation = golden["conversations"][expected["conversation"].get<std::string>()];
      ChatInput input;
      input.messages = conversation["messages"];
      if (conversation.contains("tools")) input.tools = conversation["tools"];
      if (conversation.contains("kwargs")) input.kwargs = conversation["kwargs"];
      input.add_generation_prompt = expected["add_generation_prompt"];
      const auto text = parsed->render(input);
      ASSERT_EQ(text.ok(), expected.contains("output"))
          << entry["name"] << expected["conversation"] << (text.ok() ? *text : text.error().message);
      if (text.ok()) {
        EXPECT_EQ(*text, expected["output"].get<std::string>()) << entry["name"] << expected["conversation"];
      }
    }
  }
  for (const Json& snippet : golden["snippets"]) {
    const auto text = render(snippet["source"], golden["names"]);
    EXPECT_EQ(text.ok(), snippet.contains("output")) << snippet["source"] << (text.ok() ? *text : text.error().message);
    if (text.ok() && snippet.contains("output")) {
      EXPECT_EQ(*text, snippet["output"].get<std::string>()) << snippet["source"];
    }
  }
}

TEST(ChatTemplate, ToolUseIsTakenWhenThereAreTools) {
  const auto parsed =
      ChatTemplate::parse("", R"({"chat_template": [{"name": "default", "template": "plain{{ bos_token }}"},
      {"name": "tool_use", "template": "tools {{ tools|length }}"}], "bos_token": {"content": "<s>"}})",
                          "tokenizer_config.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ChatInput input;
  EXPECT_EQ(parsed->render(input).value(), "plain<s>");
  input.tools = Json::array({1, 2});
  EXPECT_EQ(parsed->render(input).value(), "tools 2");
}

TEST(ChatTemplate, ModelWithoutOneIsNotFound) {
  const auto parsed = ChatTemplate::parse("", R"({"bos_token": "<s>"})", "dir/tokenizer_config.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().kind, ErrorKind::kNotFound);
  EXPECT_FALSE(ChatTemplate::load(test::repo_data("template/nowhere")).ok());
}

TEST(ChatTemplate, ErrorsNameFileAndLine) {
  EXPECT_EQ(render_error("a\nb\n{% if x %}"),
            "chat_template.jinja: line 3: the end of the template, expected {% endif %}");
  EXPECT_NE(render_error("a\n\n{{ raise_exception('no\nway') }}")
                .find("chat_template.jinja: chat template line 3: the template says: no way"),
            std::string::npos);
  for (const char* config :
       {"[]", "{", R"({"chat_template": 3})", R"({"chat_template": [3]})",
        R"({"chat_template": [{"name": "a", "template": "x"}, {"name": "b", "template": "x"}]})"}) {
    const auto parsed = ChatTemplate::parse("", config, "dir/tokenizer_config.json");
    ASSERT_FALSE(parsed.ok()) << config;
    EXPECT_NE(parsed.error().message.find("dir/tokenizer_config.json"), std::string::npos) << parsed.error().message;
  }
}

TEST(ChatTemplate, WrongInputIsRefused) {
  const auto parsed = ChatTemplate::parse("{{ messages }}", "", "chat_template.jinja");
  ChatInput input;
  input.messages = 3;
  EXPECT_FALSE(parsed->render(input).ok());
  input.messages = Json::array({3});
  EXPECT_FALSE(parsed->render(input).ok());
  input.messages = Json::array({{{"n", 18446744073709551615ull}}});
  EXPECT_FALSE(parsed->render(input).ok());
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({deep});
  input.messages = Json::array({{{"content", deep}}});
  EXPECT_FALSE(parsed->render(input).ok());
}

TEST(ChatTemplate, HostileTemplatesEndInAnError) {
  std::string additions = "{{ 1";
  for (int i = 0; i < 100'000; ++i) additions += "+1";
  const std::vector<std::string> hostile = {
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
      "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}{% endfor %}",
      "{{ 'x' * 9999999999 }}",
      "{{ [1] * 9999999999 }}",
      "{{ 9 ** 9 ** 9 ** 9 }}",
      "{{ 'x'.ljust(9999999999) }}",
      "{{ ('a' * 9999999)|replace('', 'bbbbbbbbbbbbbbbb') }}",
      "{{" + std::string(100'000, '(') + "1",
      "{{" + std::string(100'000, '[') + "1",
      "{{" + std::string(100'000, '-') + "1}}",
      "{{ not " + std::string(1000, ' ') + "1",
      additions + " }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 * 2 }}",
      "{{ 99999999999999999999 }}",
      "{{ {}|tojson(indent=99999999999) }}",
      "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
      "{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me }}",
  };
  for (const std::string& source : hostile) {
    const auto start = std::chrono::steady_clock::now();
    const std::string message = render_error(source);
    EXPECT_EQ(message.rfind("chat_template.jinja: ", 0), 0u) << source.substr(0, 80) << ": " << message;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(test::kSanitized ? 200 : 20))
        << source.substr(0, 80);
  }
}

TEST(ChatTemplate, SearchIsLinear) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(render("{{ ('a' * 3000000 ~ 'b') in ('a' * 6000000) }}").value(), "False");
  EXPECT_EQ(render_error("{{ ('a' * 6000000).rfind('b' ~ 'a' * 3000000) }}").rfind("chat_template.jinja: ", 0), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(test::kSanitized ? 200 : 20));
}

// Ends in an error of the template within seconds.
void expect_refused(const std::string& source, const std::string& reason) {
  const auto start = std::chrono::steady_clock::now();
  const std::string message = render_error(source);
  EXPECT_EQ(message.rfind("chat_template.jinja: ", 0), 0u) << source.substr(0, 80) << ": " << message;
  EXPECT_NE(message.find(reason), std::string::npos) << source.substr(0, 80) << ": " << message;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(test::kSanitized ? 200 : 20))
      << source.substr(0, 80);
}

TEST(ChatTemplate, KeyThatDoesNotEqualItselfIsCopied) {
  EXPECT_EQ(render("{% set x = 1e308*10 %}{{ dict({x-x: 1}) }}").value(), "{nan: 1}");
}

TEST(ChatTemplate, BoundMethodsAndKeysCountAsNesting) {
  expect_refused("{% set ns=namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x=[ns.x.copy] %}{% endfor %}",
                 "nested too deep");
  expect_refused("{% set ns=namespace(x=1) %}{% for i in range(99999) %}{% set ns.x={(ns.x,): 1} %}{% endfor %}",
                 "nested too deep");
  expect_refused("{% set ns=namespace(x=1) %}{% for i in range(99999) %}{% set ns.x=dict([([ns.x], 1)]) %}{% endfor %}",
                 "nested too deep");
}

TEST(ChatTemplate, PaddingTakesOneCharacter) {
  EXPECT_EQ(render("{{ 'x'.rjust(3, '\u00e9') }}").value(), "\u00e9\u00e9x");
  expect_refused("{{ 'x'.ljust(3, 'ab') }}", "exactly one character");
  expect_refused("{{ 'x'.center(3, '') }}", "exactly one character");
  expect_refused("{{ 'x'.rjust(9999999, 'y' * 9999999) }}", "exactly one character");
}

TEST(ChatTemplate, TextsAreChargedBeforeTheyGrow) {
  std::string parts = "{% set a = 'x' * 40000000 %}{{ a";
  for (int i = 0; i < 200; ++i) parts += " ~ a";
  expect_refused(parts + " }}", "a text of more than");
  const std::string wide = "{% set a = 'x' * 40000000 %}";
  expect_refused(wide + "{{ [[[[1, 2], 3], 4], 5]|tojson(indent=a) }}", "a text of more than");
  expect_refused(wide + "{{ range(50)|list|tojson(separators=(a, ':')) }}", "a text of more than");
  expect_refused(wide + "{{ {'a': 1, 'b': 2, 'c': 3}|tojson(separators=(',', a)) }}", "a text of more than");
}

TEST(ChatTemplate, IndexAtTheEdgeOfIntegersIsUndefined) {
  EXPECT_EQ(render("{{ 'abc'[9223372036854775807] }}{{ 'abc'[-9223372036854775807 - 1] }}{{ 'abc'[3] }}|"
                   "{{ 'abc'[-1] }}{{ 'abc'[-3] }}{{ 'abc'[2] }}")
                .value(),
            "|cac");
}

TEST(ChatTemplate, LookingThroughNamesAndKeysCountsAsWork) {
  std::string names;
  std::string attributes = "{% set ns = namespace() %}";
  std::string keys = "{% set d = {";
  for (int i = 0; i < 20'000; ++i) {
    const std::string number = std::to_string(i);
    names += "{% set n" + number + "=1 %}";
    attributes += "{% set ns.n" + number + "=1 %}";
    if (i < 2'000) keys += number + ":1,";
  }
  keys += "} %}";
  const auto repeated = [](const std::string& body) { return "{% for i in range(99999) %}" + body + "{% endfor %}"; };
  expect_refused(names + repeated("{% if absent %}{% endif %}"), "more work than");
  expect_refused(attributes + repeated("{% if ns.absent %}{% endif %}"), "more work than");
  std::string lookups;
  for (int i = 0; i < 6; ++i) lookups += "{% if d[-1] %}{% endif %}";
  expect_refused(keys + repeated(lookups), "more work than");
  expect_refused(keys + repeated("{% if dict(d) %}{% endif %}"), "more work than");
}

TEST(ChatTemplate, AnErrorThatQuotesTheTemplateIsOneLine) {
  for (const char* source : {"{{ [1]|map('no\nfilter')|list }}", "{{ [1]|select('no\n\rtest')|list }}",
                             "{% set x = namespace(a=1) %}{{ x.b['\n'].c }}", "{{ 'a\n' + 1 }}"}) {
    const std::string message = render_error(source);
    EXPECT_FALSE(message.empty()) << source;
    EXPECT_EQ(message.find_first_of("\n\r"), std::string::npos) << message;
  }
}

TEST(ChatTemplate, ComparingSharedPartsCountsAsWork) {
  expect_refused(
      "{% set ns=namespace(a=[1],b=[1]) %}{% for i in range(99) %}{% set ns.a=[ns.a,ns.a] %}"
      "{% set ns.b=[ns.b,ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "more work than");
}

TEST(ChatTemplate, UnlikelyIntegersKeepTheirEdges) {
  EXPECT_EQ(render("{{ (-9223372036854775807 - 1) % -1 }} {{ 7 // -1 }} {{ -9223372036854775807 }}").value(),
            "0 -7 -9223372036854775807");
  EXPECT_FALSE(render("{{ (-9223372036854775807 - 1) // -1 }}").ok());
}

}  // namespace
}  // namespace latte
