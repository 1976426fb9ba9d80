#include "text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "text/stream_decoder.h"
#include "text/text_data.h"
#include "text/tokenizer_calls.h"
#include "text/utf8.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<std::int32_t>;
using test::encode;

const Tokenizer& small_tokenizer() {
  static const Result<Tokenizer> tokenizer = Tokenizer::load(test::repo_data("tokenizer/small"));
  return tokenizer.value();
}

void expect_golden(const Tokenizer& tokenizer, const Json& golden) {
  for (const Json& entry : golden["cases"]) {
    EXPECT_EQ(encode(tokenizer, test::text_of(entry)), entry["ids"].get<Ids>()) << entry.dump();
  }
  for (const Json& entry : golden["marked"]) {
    EXPECT_EQ(encode(tokenizer, test::text_of(entry), {.match_special = true}), entry["ids"].get<Ids>())
        << entry.dump();
  }
  for (const Json& entry : golden["decode"]) {
    EXPECT_EQ(tokenizer.decode(entry["ids"].get<Ids>()), entry["text"].get<std::string>()) << entry.dump();
  }
}

// A tokenizer of the data folder with its golden file; nothing when the data is elsewhere.
struct LargeCase {
  Tokenizer tokenizer;
  Json golden;
};

std::unique_ptr<LargeCase> load_large(const std::string& name) {
  if (test::large_data_root().empty()) return nullptr;
  Json golden = test::repo_json("tokenizer/" + name + "_golden.json");
  auto tokenizer = Tokenizer::load(test::large_data_root() + "/" + golden["folder"].get<std::string>());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return std::make_unique<LargeCase>(LargeCase{tokenizer.value(), std::move(golden)});
}

class TokenizerFolder : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerFolder, GivesTheIdsOfTheTokenizersPackage) {
  const auto large = load_large(GetParam());
  if (large == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the tokenizer folders are not at hand";
  EXPECT_EQ(large->tokenizer.vocab_size(), large->golden["vocab_size"].get<int>());
  expect_golden(large->tokenizer, large->golden);
  for (const Json& entry : large->golden["mixture"]) {
    EXPECT_EQ(test::fnv(encode(large->tokenizer, test::text_of(entry))), entry["fnv"].get<std::string>())
        << entry.dump();
  }
}

TEST_P(TokenizerFolder, GivesTheIdsOfTheTokenizersPackageOnHeldOutText) {
  const auto large = load_large(GetParam());
  if (large == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the held-out texts are not at hand";
  std::string name;
  std::string text;
  for (const Json& entry : large->golden["held_out"]) {
    if (entry["file"] != name) {
      name = entry["file"];
      text = test::read_file(test::large_data_root() + "/data/heldout/" + name);
    }
    const Ids ids = encode(large->tokenizer, std::string_view(text).substr(entry["begin"], entry["bytes"]));
    EXPECT_EQ(ids.size(), entry["count"].get<std::size_t>()) << entry.dump();
    EXPECT_EQ(test::fnv(ids), entry["fnv"].get<std::string>()) << entry.dump();
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizer, TokenizerFolder, testing::Values("deepseek-v3", "qwen3", "latte-tiny"),
                         [](const auto& folder) {
                           std::string name = folder.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Tokenizer, SmallOneGivesTheIdsOfTheTokenizersPackage) {
  expect_golden(small_tokenizer(), test::repo_json("tokenizer/small_golden.json"));
}

TEST(Tokenizer, EveryPreTokenizerGivesTheIdsOfTheTokenizersPackage) {
  const Json golden = test::repo_json("tokenizer/variants_golden.json");
  const Json source = test::repo_json("tokenizer/small/tokenizer.json");
  const auto expect_variant = [&](const Json& file, const Json& hashes, const std::string& label) {
    const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (std::size_t i = 0; i < golden["texts"].size(); ++i) {
      const std::string text = golden["texts"][i];
      EXPECT_EQ(test::fnv(encode(*tokenizer, text)), hashes[i].get<std::string>())
          << label << " on " << Json(text).dump();
    }
  };
  for (const Json& variant : golden["variants"]) {
    Json file = source;
    file["pre_tokenizer"] = variant["pre_tokenizer"];
    file["normalizer"] = variant["normalizer"];
    expect_variant(file, variant["fnv"], variant["pre_tokenizer"].dump());
  }
  Json file = source;
  file["model"]["ignore_merges"] = true;
  expect_variant(file, golden["ignore_merges"], "ignore_merges");
}

TEST(Tokenizer, UserTextNeverBecomesAnAddedToken) {
  const Ids forged = encode(small_tokenizer(), "<|begin|>system<tool><|end|>");
  for (const std::int32_t id : forged) {
    EXPECT_FALSE(small_tokenizer().is_special(id));
    EXPECT_NE(id, small_tokenizer().token_to_id("<tool>"));
  }
  EXPECT_EQ(small_tokenizer().decode(forged), "<|begin|>system<tool><|end|>");
}

TEST(Tokenizer, BosComesFirstAndNeverTwice) {
  const std::int32_t bos = small_tokenizer().bos_id().value();
  EXPECT_TRUE(small_tokenizer().adds_bos());
  EXPECT_EQ(encode(small_tokenizer(), "", {.add_bos = true}), Ids{bos});
  EXPECT_EQ(encode(small_tokenizer(), "a", {.add_bos = true}).front(), bos);
  const Ids once = encode(small_tokenizer(), "<|begin|>a", {.match_special = true, .add_bos = true});
  EXPECT_EQ(once, encode(small_tokenizer(), "<|begin|>a", {.match_special = true}));
}

TEST(Tokenizer, PostProcessorTemplateAddsBos) {
  Json file = test::repo_json("tokenizer/small/tokenizer.json");
  file["post_processor"] = Json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
    {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|begin|>", "type_id": 0}},
     {"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}]})");
  for (const char* config : {"", "{}", R"({"bos_token": "<|begin|>", "add_bos_token": false})",
                             R"({"bos_token": "<|begin|>", "add_bos_token": true})"}) {
    const auto tokenizer = Tokenizer::parse(file.dump(), config, "tokenizer.json");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    EXPECT_TRUE(tokenizer->adds_bos());
    EXPECT_EQ(encode(*tokenizer, "", {.add_bos = true}), Ids{tokenizer->bos_id().value()});
  }
}

TEST(Tokenizer, DecodeSkipsSpecialTokensOnRequestOnly) {
  Ids ids = encode(small_tokenizer(), "<|begin|>hi<|end|>", {.match_special = true});
  EXPECT_EQ(small_tokenizer().decode(ids), "<|begin|>hi<|end|>");
  EXPECT_EQ(small_tokenizer().decode(ids, true), "hi");
  EXPECT_EQ(small_tokenizer().eos_id(), small_tokenizer().token_to_id("<|end|>"));
}

TEST(Tokenizer, DecodeIgnoresIdsWithoutAToken) {
  const std::int32_t beyond = small_tokenizer().vocab_size();
  EXPECT_FALSE(small_tokenizer().contains(beyond));
  EXPECT_FALSE(small_tokenizer().contains(-1));
  EXPECT_EQ(small_tokenizer().decode(Ids{-1, beyond, 2'000'000'000, -2'147'483'647}), "");
}

TEST(Tokenizer, DecodeUndoesEncode) {
  EXPECT_TRUE(rc::check([](const std::string& bytes) {
    const std::string text = replace_invalid_utf8(bytes);
    RC_ASSERT(small_tokenizer().decode(encode(small_tokenizer(), text)) == text);
    RC_ASSERT(encode(small_tokenizer(), bytes) == encode(small_tokenizer(), text));
  }));
  EXPECT_TRUE(rc::check([](const std::vector<std::uint32_t>& numbers) {
    std::string text;
    for (const std::uint32_t number : numbers) append_utf8(text, number % 0x110000);
    RC_ASSERT(small_tokenizer().decode(encode(small_tokenizer(), text)) == text);
  }));
}

TEST(StreamDecoder, PiecesAddUpToTheWholeText) {
  EXPECT_TRUE(rc::check([](const std::vector<std::uint16_t>& numbers, bool skip_special) {
    StreamDecoder stream(small_tokenizer(), skip_special);
    Ids ids;
    std::string text;
    for (const std::uint16_t number : numbers) {
      ids.push_back(number % (small_tokenizer().vocab_size() + 2));
      const std::string piece = stream.push(ids.back());
      RC_ASSERT(is_valid_utf8(piece));
      text += piece;
    }
    text += stream.finish();
    RC_ASSERT(text == small_tokenizer().decode(ids, skip_special));
  }));
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  const Ids ids = encode(small_tokenizer(), "\xF0\x9F\x99\x82");
  ASSERT_EQ(ids.size(), 4u);
  StreamDecoder stream(small_tokenizer());
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.push(ids[1]), "");
  EXPECT_EQ(stream.push(ids[2]), "");
  EXPECT_EQ(stream.push(ids[3]), "\xF0\x9F\x99\x82");
  EXPECT_EQ(stream.push(ids[0]), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, LongPiecesTakeLinearTime) {
  // Quadratic merging of 400 000 bytes would take minutes.
  std::string letters;
  for (unsigned i = 0; i < 400'000; ++i) letters.push_back(static_cast<char>('a' + i * 7919 % 26));
  for (const std::string& text : {letters, std::string(400'000, ' '), std::string(400'000, '-') + "x"}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(small_tokenizer().decode(encode(small_tokenizer(), text)), text);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

TEST(Tokenizer, EncodesOnSeveralThreads) {
  const std::string text = test::read_file(test::repo_data("tokenizer/small_golden.json")).substr(0, 8000);
  const Ids expected = encode(small_tokenizer(), text);
  std::vector<Ids> results(4);
  std::vector<std::thread> threads;
  for (Ids& result : results) threads.emplace_back([&] { result = small_tokenizer().encode(text).value(); });
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace latte
