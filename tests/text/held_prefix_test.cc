#include "text/held_prefix.h"

#include <gtest/gtest.h>

#include "text/stand_ins.h"

namespace latte {
namespace {

using Ids = std::vector<std::int32_t>;

class HeldPrefixTest : public testing::Test {
 protected:
  // Single letters split as the model may have written them; the tokenizer itself would merge some.
  Ids letters(std::string_view text) const {
    Ids ids;
    for (const char c : text) ids.push_back(tokenizer_.token_to_id(c == ' ' ? "Ġ" : std::string(1, c)).value());
    return ids;
  }
  Ids encode(std::string_view text) const { return tokenizer_.encode(text, {.match_special = true}).value(); }
  HeldPrefix go_on(std::string_view prompt, const Ids& held) const {
    return continue_held(tokenizer_, prompt, nullptr, held).value();
  }

  Tokenizer tokenizer_ = Tokenizer::load(LATTE_SOURCE_DIR "/tests/data/tokenizer/small").value();
};

TEST_F(HeldPrefixTest, NothingHeldIsAPlainEncoding) {
  const HeldPrefix all = go_on("<|begin|>the water", {});
  EXPECT_EQ(all.ids, encode("<|begin|>the water"));
  EXPECT_EQ(all.kept, 0);
  EXPECT_EQ(all.reason, "");
}

TEST_F(HeldPrefixTest, IdsThatSpellTheSameAreKeptHoweverTheyAreCut) {
  const Ids held = letters("the water");
  ASSERT_NE(held, encode("the water")) << "the tokenizer must cut it otherwise, or nothing is tested";
  const HeldPrefix more = go_on("the water<|end|>there", held);
  EXPECT_EQ(more.kept, 9);
  EXPECT_EQ(more.reason, "");
  Ids expected = held;
  for (const std::int32_t id : encode("<|end|>there")) expected.push_back(id);
  EXPECT_EQ(more.ids, expected);
}

TEST_F(HeldPrefixTest, KeptIdsMayEndWhereTheTokenizerWouldNotCut) {
  const Ids held = letters("th");
  const HeldPrefix more = go_on("the water", held);
  EXPECT_EQ(more.kept, 2);
  Ids expected = held;
  for (const std::int32_t id : encode("e water")) expected.push_back(id);
  EXPECT_EQ(more.ids, expected);
}

TEST_F(HeldPrefixTest, ChangedTextIsCutAtABorderOfBothAndSaysSo) {
  Ids held = encode("<|begin|>");
  for (const std::int32_t id : letters("xyz the water")) held.push_back(id);
  const HeldPrefix more = go_on("<|begin|>xyz the fire", held);
  EXPECT_GE(more.kept, 4) << "<|begin|>xyz is common";
  EXPECT_LT(more.kept, static_cast<int>(held.size()));
  EXPECT_EQ(tokenizer_.decode(more.ids), "<|begin|>xyz the fire");
  EXPECT_TRUE(std::equal(held.begin(), held.begin() + more.kept, more.ids.begin()));
  EXPECT_NE(more.reason.find("fire"), std::string::npos) << more.reason;
  EXPECT_NE(more.reason.find("water"), std::string::npos) << more.reason;
}

TEST_F(HeldPrefixTest, NothingInCommonKeepsNothing) {
  const HeldPrefix more = go_on("abc", letters("xyz"));
  EXPECT_EQ(more.kept, 0);
  EXPECT_EQ(more.ids, encode("abc"));
}

TEST_F(HeldPrefixTest, ShorterPromptKeepsWhatItHas) {
  const HeldPrefix less = go_on("xy", letters("xyz"));
  EXPECT_EQ(less.kept, 2);
  EXPECT_EQ(less.ids, letters("xy"));
}

// A reply that was stopped within a character reads as U+FFFD; the template is given that text.
TEST_F(HeldPrefixTest, HalfACharacterIsKeptAsTheTextItReads) {
  Ids held = letters("x");
  const Ids euro = tokenizer_.encode("€").value();
  ASSERT_GE(euro.size(), 2u);
  held.push_back(euro[0]);
  const HeldPrefix more = go_on("x\uFFFD<|end|>y", held);
  EXPECT_EQ(more.kept, 2);
  EXPECT_EQ(more.reason, "");
  Ids expected = held;
  for (const std::int32_t id : encode("<|end|>y")) expected.push_back(id);
  EXPECT_EQ(more.ids, expected);
}

TEST_F(HeldPrefixTest, HiddenTokensStayTextBehindKeptIds) {
  StandIns stand_ins;
  stand_ins.avoid("");
  const std::string said = tokenizer_.hide_tokens("a<|end|>b", false, stand_ins).value();
  // "th" ends where "the" would not be cut, so that the rest is cut from the hidden text.
  const std::string prompt = "the" + said;
  const Ids held = letters("th");
  const HeldPrefix more = continue_held(tokenizer_, prompt, &stand_ins, held).value();
  EXPECT_EQ(more.kept, 2);
  EXPECT_EQ(tokenizer_.decode(more.ids), "thea<|end|>b");
  EXPECT_EQ(std::count(more.ids.begin(), more.ids.end(), *tokenizer_.token_to_id("<|end|>")), 0);
}

}  // namespace
}  // namespace latte
