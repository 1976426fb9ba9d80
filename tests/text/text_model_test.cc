#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>

#include "text/stand_ins.h"
#include "text/stream_decoder.h"
#include "text/text_data.h"
#include "text/tokenizer.h"
#include "text/tokenizer_calls.h"
#include "text/utf8.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;
using test::encode;

const Tokenizer& tokenizer_of(std::string_view name) {
  static std::map<std::string, Tokenizer, std::less<>> loaded;
  const auto found = loaded.find(name);
  if (found != loaded.end()) return found->second;
  const auto tokenizer = Tokenizer::load(test::repo_data("tokenizer/" + std::string(name)));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return loaded.emplace(std::string(name), tokenizer.value()).first->second;
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids, bool skip_special = false) {
  StreamDecoder stream(tokenizer, skip_special);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string piece = stream.push(id);
    EXPECT_TRUE(is_valid_utf8(piece));
    text += piece;
  }
  return text + stream.finish();
}

class TextModelFolder : public testing::TestWithParam<const char*> {
 protected:
  const Tokenizer& tokenizer() { return tokenizer_of(GetParam()); }
  Json golden() { return test::repo_json(std::string("tokenizer/") + GetParam() + "_golden.json"); }
};

TEST_P(TextModelFolder, GivesTheIdsOfItsPackage) {
  const Json cases = golden();
  for (const Json& entry : cases["cases"]) {
    EXPECT_EQ(encode(tokenizer(), test::text_of(entry)), entry["ids"].get<Ids>()) << entry.dump();
  }
  for (const Json& entry : cases["mixture"]) {
    EXPECT_EQ(test::fnv(encode(tokenizer(), test::text_of(entry))), entry["fnv"].get<std::string>()) << entry.dump();
  }
}

TEST_P(TextModelFolder, MatchesAddedTokensAsItsPackage) {
  const Json cases = golden();
  for (const Json& entry : cases["marked"]) {
    EXPECT_EQ(encode(tokenizer(), test::text_of(entry), {.match_special = true}), entry["ids"].get<Ids>())
        << entry.dump();
  }
}

TEST_P(TextModelFolder, DecodesAsItsPackageWholeAndInPieces) {
  const Json cases = golden();
  for (const Json& entry : cases["decode"]) {
    EXPECT_EQ(tokenizer().decode(entry["ids"].get<Ids>()), entry["text"].get<std::string>()) << entry.dump();
    EXPECT_EQ(streamed(tokenizer(), entry["ids"].get<Ids>()), entry["text"].get<std::string>()) << entry.dump();
  }
}

class TextModelHeldOut : public TextModelFolder {};

TEST_P(TextModelHeldOut, GivesTheIdsOfItsPackage) {
  if (test::large_data_root().empty()) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the held-out texts are not at hand";
  const Json cases = golden();
  std::string name;
  std::string text;
  for (const Json& entry : cases["held_out"]) {
    if (entry["file"] != name) {
      name = entry["file"];
      text = test::read_file(test::large_data_root() + "/data/heldout/" + name);
    }
    const Ids ids = encode(tokenizer(), std::string_view(text).substr(entry["begin"], entry["bytes"]));
    EXPECT_EQ(ids.size(), entry["count"].get<std::size_t>()) << entry.dump();
    EXPECT_EQ(test::fnv(ids), entry["fnv"].get<std::string>()) << entry.dump();
  }
}

TEST_P(TextModelFolder, UserTextNeverBecomesAnAddedToken) {
  Ids added;
  std::string all;
  for (std::int32_t id = 0; id < tokenizer().vocab_size(); ++id) {
    const std::string text(tokenizer().token_bytes(id));
    if (!tokenizer().contains(id) || encode(tokenizer(), text, {.match_special = true}) != Ids{id}) continue;
    if (encode(tokenizer(), text) == Ids{id}) continue;               // a word
    if (id != tokenizer().token_to_id("<unk>")) added.push_back(id);  // what is no token becomes it
    all += "a" + text + text + " " + text + "\n";
  }
  // <s> and </s> at the least.
  ASSERT_GE(added.size(), 2u);
  for (const std::string& text : {all, all + all, "<s>" + all}) {
    for (const std::int32_t id : encode(tokenizer(), text)) {
      EXPECT_EQ(std::count(added.begin(), added.end(), id), 0) << id;
      EXPECT_FALSE(tokenizer().is_special(id) && id != tokenizer().token_to_id("<unk>")) << id;
    }
  }
}

TEST_P(TextModelFolder, HiddenTokensDoNotMatch) {
  std::string forged = "x<s>y</s>[BOS]<|im_end|><tool></user>[EOS]";
  StandIns stand_ins;
  stand_ins.avoid(forged);
  const auto hidden = tokenizer().hide_tokens(forged, false, stand_ins);
  ASSERT_TRUE(hidden.ok());
  const EncodeOptions options{.match_special = true, .stand_ins = &stand_ins};
  EXPECT_EQ(encode(tokenizer(), *hidden, options), encode(tokenizer(), forged));
}

TEST_P(TextModelFolder, StreamsOfAnyIdsAreTheirText) {
  EXPECT_TRUE(rc::check([&](const std::vector<std::uint16_t>& numbers, bool skip_special) {
    Ids ids;
    for (const std::uint16_t number : numbers) ids.push_back(number % (tokenizer().vocab_size() + 2));
    RC_ASSERT(streamed(tokenizer(), ids, skip_special) == tokenizer().decode(ids, skip_special));
  }));
}

INSTANTIATE_TEST_SUITE_P(TextModel, TextModelFolder, testing::Values("kimi", "sentencepiece", "unigram", "llama"),
                         [](const auto& folder) { return std::string(folder.param); });

INSTANTIATE_TEST_SUITE_P(TextModel, TextModelHeldOut, testing::Values("kimi", "sentencepiece", "llama"),
                         [](const auto& folder) { return std::string(folder.param); });

TEST(Llama, EveryFormGivesTheIdsAndTextsOfTheTokenizersPackage) {
  const Json golden = test::repo_json("tokenizer/llama_golden.json");
  for (const Json& variant : golden["variants"]) {
    Json file = test::repo_json("tokenizer/llama/tokenizer.json");
    for (const auto& [key, value] : variant["change"].items()) {
      if (key == "model") {
        file["model"].update(value);
      } else {
        file[key] = value;
      }
    }
    const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (std::size_t i = 0; i < golden["texts"].size(); ++i) {
      EXPECT_EQ(test::fnv(encode(*tokenizer, golden["texts"][i].get<std::string>())),
                variant["fnv"][i].get<std::string>())
          << variant["change"].dump() << golden["texts"][i].dump();
    }
    for (std::size_t i = 0; i < golden["marked"].size(); ++i) {
      const Ids ids = encode(*tokenizer, test::text_of(golden["marked"][i]), {.match_special = true});
      EXPECT_EQ(test::fnv(ids), variant["marked"][i].get<std::string>())
          << variant["change"].dump() << golden["marked"][i].dump();
      EXPECT_EQ(tokenizer->decode(ids), variant["decoded"][i].get<std::string>()) << variant["change"].dump();
    }
  }
}

TEST(Llama, MergesThatSpellAControlTokenAreNoWayToIt) {
  Json file = test::repo_json("tokenizer/llama/tokenizer.json");
  Json& model = file["model"];
  const std::int64_t size = tokenizer_of("llama").vocab_size();
  model["vocab"]["</"] = size;
  model["vocab"]["s>"] = size + 1;
  for (const char* merge : {"< /", "s >", "</ s>"}) model["merges"].insert(model["merges"].begin(), merge);
  const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const Ids ids = encode(*tokenizer, "x</s>");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 2), 0);
  EXPECT_EQ(encode(*tokenizer, "x</s>", {.match_special = true}).back(), 2);
}

TEST(Families, PreTokenizersGiveTheIdsOfTheTokenizersPackage) {
  const Json golden = test::repo_json("tokenizer/families_golden.json");
  for (const Json& family : golden["families"]) {
    Json file = test::repo_json("tokenizer/small/tokenizer.json");
    file["pre_tokenizer"] = family["pre_tokenizer"];
    file["normalizer"] = family["normalizer"];
    file["model"]["ignore_merges"] = family["ignore_merges"];
    const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (std::size_t i = 0; i < golden["texts"].size(); ++i) {
      EXPECT_EQ(test::fnv(encode(*tokenizer, golden["texts"][i].get<std::string>(), {.match_special = true})),
                family["fnv"][i].get<std::string>())
          << family["name"] << golden["texts"][i].dump();
    }
  }
}

TEST(Tokenizer, WholePiecesFirstIsNoWayToAnAddedToken) {
  Json file = test::repo_json("tokenizer/small/tokenizer.json");
  file["model"]["ignore_merges"] = true;
  file["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  for (const char* text : {"<|begin|>", "<tool>"}) {
    const std::int32_t id = tokenizer->token_to_id(text).value();
    EXPECT_EQ(encode(*tokenizer, text, {.match_special = true}), Ids{id});
    const Ids ids = encode(*tokenizer, text);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), id), 0) << text;
  }
}

TEST(StreamDecoder, TextThatGoesOnKeepsItsFirstSpace) {
  const Tokenizer& tokenizer = tokenizer_of("sentencepiece");
  const Ids ids = encode(tokenizer, "the end");
  ASSERT_EQ(tokenizer.token_bytes(ids[0])[0], ' ');
  StreamDecoder start(tokenizer);
  EXPECT_EQ(start.push(ids[0])[0], 't');
  StreamDecoder going_on(tokenizer, false, true);
  EXPECT_EQ(going_on.push(ids[0])[0], ' ');
}

TEST(StreamDecoder, BytesOfOneCharacterWaitForEachOther) {
  const Tokenizer& tokenizer = tokenizer_of("sentencepiece");
  const Ids ids = encode(tokenizer, "\xF0\x9F\xA6\x84");
  ASSERT_EQ(ids.size(), 5u);  // the space before the text, four bytes
  StreamDecoder stream(tokenizer);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(stream.push(ids[i]), "");
  EXPECT_EQ(stream.push(ids[4]), "\xF0\x9F\xA6\x84");
}

TEST(SentencePiece, LlamaTokenizerDefaults) {
  const std::string bytes = test::read_file(test::repo_data("tokenizer/sentencepiece/tokenizer.model"));
  const auto parse = [&](const char* config) {
    const auto tokenizer = Tokenizer::parse(TokenizerKind::kSentencePiece, bytes, config, "tokenizer.model");
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    return tokenizer.value();
  };
  EXPECT_TRUE(parse("").adds_bos());
  EXPECT_EQ(parse("").bos_id(), 1);
  EXPECT_EQ(parse("").eos_id(), 2);
  EXPECT_FALSE(parse(R"({"add_bos_token": false})").adds_bos());
  EXPECT_FALSE(parse(R"({"bos_token": null})").adds_bos());
  EXPECT_EQ(parse(R"({"eos_token": "<s>"})").eos_id(), 1);
  const Tokenizer legacy = parse("");
  const Tokenizer later = parse(R"({"legacy": false})");
  const Tokenizer bare = parse(R"({"legacy": false, "add_prefix_space": false})");
  const std::string text = "one</s>two";
  EXPECT_EQ(legacy.decode(encode(legacy, text, {.match_special = true})), "one</s> two");
  EXPECT_EQ(later.decode(encode(later, text, {.match_special = true})), "one</s>two");
  EXPECT_EQ(encode(later, "one two"), encode(legacy, "one two"));
  EXPECT_EQ(encode(bare, " one two"), encode(legacy, "one two"));
}

TEST(Tiktoken, TokenOfTheConfigurationThatIsAWordIsNotMadeByText) {
  const std::string file = test::read_file(test::repo_data("tokenizer/kimi/tiktoken.model"));
  const std::int32_t the = tokenizer_of("kimi").token_to_id(" the").value();
  ASSERT_EQ(encode(tokenizer_of("kimi"), " the"), Ids{the});
  const Json config = {{"added_tokens_decoder", {{std::to_string(the), {{"content", " the"}, {"special", true}}}}}};
  const auto tokenizer = Tokenizer::parse(TokenizerKind::kTiktoken, file, config.dump(), "tiktoken.model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const Ids ids = encode(*tokenizer, " the the");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), the), 0);
  EXPECT_EQ(tokenizer->decode(ids), " the the");
}

TEST(SentencePiece, TokenOfTheConfigurationThatIsAPieceIsNotMadeByText) {
  const std::string bytes = test::read_file(test::repo_data("tokenizer/sentencepiece/tokenizer.model"));
  const std::int32_t the = tokenizer_of("sentencepiece").token_to_id("\xE2\x96\x81the").value();
  const Json config = {
      {"added_tokens_decoder", {{std::to_string(the), {{"content", "\xE2\x96\x81the"}, {"special", true}}}}}};
  const auto tokenizer = Tokenizer::parse(TokenizerKind::kSentencePiece, bytes, config.dump(), "tokenizer.model");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const Ids ids = encode(*tokenizer, "the the");
  EXPECT_EQ(std::count(ids.begin(), ids.end(), the), 0);
  EXPECT_EQ(tokenizer->decode(ids), "the the");
}

}  // namespace
}  // namespace latte
