#include "text/utf8.h"

#include <gtest/gtest.h>

namespace latte {
namespace {

TEST(Utf8, EachMaximalSubpartIsOneReplacement) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(replace_invalid_utf8("a\x80"
                                 "b"),
            "a" + r + "b");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), r);
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98"
                                 "x"),
            r + "x");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), r + r);
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xE0\x9F\xBF"), r + r + r);
}

TEST(Utf8, ValidTextStays) {
  const std::string text = "a\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  EXPECT_TRUE(is_valid_utf8(text));
  EXPECT_EQ(replace_invalid_utf8(text), text);
  EXPECT_EQ(count_code_points(text), 7u);
}

TEST(Utf8, OnlyACutSequenceIsIncomplete) {
  EXPECT_TRUE(decode_utf8("\xF0\x9F", 0).incomplete);
  EXPECT_TRUE(decode_utf8("x\xE2", 1).incomplete);
  EXPECT_FALSE(decode_utf8("\xE2x", 0).incomplete);
  EXPECT_FALSE(decode_utf8("\xFF", 0).incomplete);
}

TEST(Utf8, EveryCodePointReadsBack) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    std::string text;
    append_utf8(text, c);
    const Utf8Step step = decode_utf8(text, 0);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_TRUE(step.valid);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(step.code_point, surrogate ? 0xFFFD : c);
  }
}

}  // namespace
}  // namespace latte
