#include "text/pattern.h"

#include <gtest/gtest.h>

#include "text/pattern_syntax.h"

namespace latte {
namespace {

std::vector<std::string> matches(std::string_view expression, std::string_view text) {
  const auto pattern = Pattern::regex(expression);
  EXPECT_TRUE(pattern.ok()) << pattern.error().message;
  std::vector<TextSpan> spans;
  const Status found = pattern.value().find_all(text, spans);
  EXPECT_TRUE(found.ok()) << found.error().message;
  std::vector<std::string> parts;
  for (const TextSpan& span : spans) parts.emplace_back(text.substr(span.begin, span.size()));
  return parts;
}

using Parts = std::vector<std::string>;

TEST(PatternSyntax, IntersectionsBecomeLookaheads) {
  EXPECT_EQ(to_pcre2_syntax(R"([\p{L}&&[^\p{Han}]]+)").value(), R"((?:(?=[^\p{sc:Han}])[\p{L}])+)");
  EXPECT_EQ(to_pcre2_syntax("[a-c]").value(), "[a-c]");
}

TEST(Pattern, IntersectionKeepsWhatBothHold) {
  EXPECT_EQ(matches("[a-z&&[^m-p]]+", "almz"), (Parts{"al", "z"}));
  EXPECT_EQ(matches("[^a-z&&[^m-p]]+", "almz9"), (Parts{"m", "9"}));
}

TEST(Pattern, NestedClassesAreUnions) {
  EXPECT_EQ(matches("[a[xy]]+", "axbyy"), (Parts{"ax", "yy"}));
  EXPECT_EQ(matches("[^a[xy]]+", "axbcy"), (Parts{"bc"}));
}

TEST(Pattern, SpaceIsUnicodeWhiteSpaceAlone) {
  // U+180E lost the property; U+3000 has it.
  EXPECT_EQ(matches(R"(\s)", "\xE1\xA0\x8E\xE3\x80\x80"), (Parts{"\xE3\x80\x80"}));
}

TEST(Pattern, EmptyMatchBehindAMatchIsNone) { EXPECT_EQ(matches("x*", "axxb"), (Parts{"", "xx", ""})); }

TEST(Pattern, PossessiveAndLookaheadWork) {
  EXPECT_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b"), (Parts{"  ", " "}));
  EXPECT_EQ(matches(R"([^\r\n\p{L}]?+\p{L}+)", " ab-c"), (Parts{" ab", "-c"}));
}

TEST(Pattern, LiteralMatchesWithoutOverlap) {
  std::vector<TextSpan> spans;
  ASSERT_TRUE(Pattern::literal("aa").find_all("aaaaa", spans).ok());
  EXPECT_EQ(spans, (std::vector<TextSpan>{{0, 2}, {2, 4}}));
}

TEST(Pattern, BrokenExpressionsAreRefused) {
  for (const char* expression :
       {"(", "[a", "[a&&]", "a\\", "\\u12", "*", "[[[[[[[[[[[[[[[[[[a", "\\p{Nope}", "[b-a]"}) {
    EXPECT_FALSE(Pattern::regex(expression).ok()) << expression;
  }
}

}  // namespace
}  // namespace latte
