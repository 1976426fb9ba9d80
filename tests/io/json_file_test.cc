#include "io/json_file.h"

#include <gtest/gtest.h>

#include "support/refusal.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

std::string json_refusal(std::string_view text) { return test::refusal(parse_json(text, "x.json")); }

TEST(ParseJson, BuildsTheTree) {
  const Result<Json> parsed = parse_json(R"({"a":[1,-2,2.5,true,null,{"b":"c"}],"d":{}})", "x.json");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, Json::parse(R"({"a":[1,-2,2.5,true,null,{"b":"c"}],"d":{}})"));
  EXPECT_EQ(*parse_json("7", "x.json"), Json(7));
}

TEST(ParseJson, SyntaxErrorNamesFileAndByte) {
  EXPECT_EQ(
      json_refusal(R"({"a":1,})"),
      R"(x.json: not valid JSON at byte 8: "syntax error while parsing object key - unexpected '}'; expected string literal"; correct it or fetch it again)");
  EXPECT_NE(json_refusal("").find("x.json: not valid JSON at byte 1"), std::string::npos) << json_refusal("");
  EXPECT_NE(json_refusal("[1] 2").find("x.json: not valid JSON at byte 5"), std::string::npos) << json_refusal("[1] 2");
  EXPECT_NE(json_refusal("[1e999]").find("x.json: not valid JSON"), std::string::npos) << json_refusal("[1e999]");
}

TEST(ParseJson, BrokenUtf8StaysOutOfTheMessage) {
  const std::string message = json_refusal("{\"a\": \"\xff\n\"}");
  EXPECT_NE(message.find("ill-formed UTF-8"), std::string::npos) << message;
  EXPECT_EQ(message.find('\xff'), std::string::npos);
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST(ParseJson, RepeatedKeyIsRefused) {
  EXPECT_EQ(json_refusal(R"({"a":1,"b":{"a":1},"a":2})"),
            R"(x.json: key "a" is given twice in one object, expected once)");
}

TEST(ParseJson, DepthIsLimited) {
  EXPECT_TRUE(parse_json(std::string(kJsonMaxDepth, '[') + std::string(kJsonMaxDepth, ']'), "x.json").ok());
  EXPECT_EQ(json_refusal(std::string(1 << 20, '[')), "x.json: JSON nested deeper than 64 levels");
}

TEST(ReadJsonFile, EmptyFileIsNamed) {
  const test::TempFolder folder;
  const Result<Json> parsed = read_json_file(folder.write("config.json", ""));
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message,
            folder.file("config.json") + ": the file has 0 bytes, expected JSON; fetch it again");
}

TEST(QuoteName, IsShortAndOnOneLine) {
  EXPECT_EQ(quote_name("a\nb\"c"), R"("a\nb\"c")");
  EXPECT_LT(quote_name(std::string(100000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace latte
