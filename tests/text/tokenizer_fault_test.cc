#include <gtest/gtest.h>

#include <functional>

#include "text/text_data.h"
#include "text/tokenizer.h"
#include "text/tokenizer_calls.h"

namespace latte {
namespace {

using Json = nlohmann::ordered_json;

Json source() {
  static const Json file = test::repo_json("tokenizer/small/tokenizer.json");
  return file;
}

std::string tokenizer_error(const std::string& text, const std::string& config = "") {
  return test::load_error(Tokenizer::parse(text, config, "dir/tokenizer.json"));
}

struct Fault {
  const char* name;
  std::function<void(Json&)> plant;
  const char* key;
};

TEST(TokenizerFault, EachIsOneErrorThatNamesFileAndKey) {
  const std::vector<Fault> faults = {
      {"no model", [](Json& f) { f.erase("model"); }, "model is missing"},
      {"model a list", [](Json& f) { f["model"] = Json::array(); }, "model is an array, expected an object"},
      {"model type", [](Json& f) { f["model"]["type"] = "Unigram"; }, "model.type \"Unigram\""},
      {"no vocab", [](Json& f) { f["model"].erase("vocab"); }, "model.vocab"},
      {"empty vocab", [](Json& f) { f["model"]["vocab"] = Json::object(); }, "model.vocab"},
      {"negative id", [](Json& f) { f["model"]["vocab"]["zzz"] = -1; }, "id -1 of token \"zzz\""},
      {"huge id", [](Json& f) { f["model"]["vocab"]["zzz"] = 4'000'000'000u; }, "id 4000000000 of token \"zzz\""},
      {"id beyond 64 bits", [](Json& f) { f["model"]["vocab"]["zzz"] = 18446744073709551615ull; }, "of token \"zzz\""},
      {"duplicate id", [](Json& f) { f["model"]["vocab"]["zzz"] = 5; }, "id 5 of token \"zzz\""},
      {"fractional id", [](Json& f) { f["model"]["vocab"]["zzz"] = 1.5; }, "the id of token \"zzz\""},
      {"id a list", [](Json& f) { f["model"]["vocab"]["zzz"] = Json::array(); }, "the id of token \"zzz\""},
      {"id an object", [](Json& f) { f["model"]["vocab"]["zzz"] = Json::object(); }, "the id of token \"zzz\""},
      {"unknown token in merge", [](Json& f) { f["model"]["merges"].push_back("nowhere x"); }, "\"nowhere\""},
      {"merge without a token",
       [](Json& f) {
         f["model"]["merges"].push_back({"q", "zx"});
       },
       "model.merges["},
      {"merge of one", [](Json& f) { f["model"]["merges"].push_back("ab"); }, "model.merges["},
      {"merge of three", [](Json& f) { f["model"]["merges"].push_back("a b c"); }, "model.merges["},
      {"merge list of three",
       [](Json& f) {
         f["model"]["merges"].push_back({"a", "b", "c"});
       },
       "model.merges["},
      {"merge list of one", [](Json& f) { f["model"]["merges"].push_back(Json::array({"a"})); }, "model.merges["},
      {"merge a number", [](Json& f) { f["model"]["merges"].push_back(3); }, "model.merges["},
      {"merge an object", [](Json& f) { f["model"]["merges"].push_back(Json::object()); }, "model.merges["},
      {"merge nested",
       [](Json& f) {
         f["model"]["merges"].push_back({Json::array(), "a"});
       },
       "model.merges["},
      {"byte fallback", [](Json& f) { f["model"]["byte_fallback"] = true; }, "model.byte_fallback"},
      {"dropout", [](Json& f) { f["model"]["dropout"] = 0.1; }, "model.dropout"},
      {"prefix", [](Json& f) { f["model"]["continuing_subword_prefix"] = "##"; }, "continuing_subword_prefix"},
      {"suffix", [](Json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }, "end_of_word_suffix"},
      {"unknown token", [](Json& f) { f["model"]["unk_token"] = "<nope>"; }, "model.unk_token"},
      {"flag of wrong type", [](Json& f) { f["model"]["ignore_merges"] = "yes"; }, "model.ignore_merges"},
      {"normalizer",
       [](Json& f) {
         f["normalizer"] = {{"type", "Lowercase"}};
       },
       "normalizer.type \"Lowercase\""},
      {"normalizer untyped",
       [](Json& f) {
         f["normalizer"] = {{"x", 1}};
       },
       "normalizer"},
      {"normalizer sequence",
       [](Json& f) {
         f["normalizer"] = {{"type", "Sequence"}};
       },
       "normalizer.normalizers"},
      {"no pre-tokenizer", [](Json& f) { f["pre_tokenizer"] = nullptr; }, "pre_tokenizer"},
      {"pre-tokenizer",
       [](Json& f) {
         f["pre_tokenizer"] = {{"type", "Metaspace"}};
       },
       "pre_tokenizer has no ByteLevel"},
      {"merges null", [](Json& f) { f["model"]["merges"] = nullptr; }, "model.merges is null"},
      {"merges a text", [](Json& f) { f["model"]["merges"] = "a b"; }, "model.merges is a string"},
      {"merges an object", [](Json& f) { f["model"]["merges"] = Json::object(); }, "model.merges is an object"},
      {"no merges", [](Json& f) { f["model"].erase("merges"); }, "model.merges is missing"},
      {"pre-tokenizer list", [](Json& f) { f["pre_tokenizer"]["pretokenizers"] = 3; }, "pre_tokenizer.pretokenizers"},
      {"broken regex", [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a"; }, "\"(a\""},
      {"open class", [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[a"; },
       "pre_tokenizer.pretokenizers[0]"},
      {"split pattern", [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["pattern"] = "x"; }, "pattern"},
      {"split behavior", [](Json& f) { f["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Sideways"; }, "behavior"},
      {"after ByteLevel",
       [](Json& f) {
         f["pre_tokenizer"]["pretokenizers"].push_back({{"type", "Digits"}});
       },
       "ByteLevel"},
      {"no decoder", [](Json& f) { f["decoder"] = nullptr; }, "decoder"},
      {"decoder", [](Json& f) { f["decoder"]["type"] = "WordPiece"; }, "decoder.type \"WordPiece\""},
      {"post-processor",
       [](Json& f) {
         f["post_processor"] = {{"type", "BertProcessing"}};
       },
       "post_processor.type"},
      {"template without single",
       [](Json& f) {
         f["post_processor"] = {{"type", "TemplateProcessing"}};
       },
       "single"},
      {"added tokens an object", [](Json& f) { f["added_tokens"] = Json::object(); }, "added_tokens"},
      {"added token without id", [](Json& f) { f["added_tokens"][0].erase("id"); }, "added_tokens[0]"},
      {"added token negative", [](Json& f) { f["added_tokens"][1]["id"] = -4; }, "added_tokens[1].id -4"},
      {"added token huge", [](Json& f) { f["added_tokens"][1]["id"] = 1ll << 40; }, "added_tokens[1].id"},
      {"added token empty", [](Json& f) { f["added_tokens"][1]["content"] = ""; }, "added_tokens[1].content"},
      {"added token twice", [](Json& f) { f["added_tokens"].push_back(f["added_tokens"][0]); }, "given twice"},
      {"added token with the id of a word",
       [](Json& f) {
         f["added_tokens"].push_back({{"id", 300}, {"content", "<n>"}});
       },
       "\"<n>\""},
      {"added token that is a word with another id",
       [](Json& f) {
         f["added_tokens"].push_back({{"id", 9000}, {"content", "a"}});
       },
       "id 9000"},
      {"added token flag", [](Json& f) { f["added_tokens"][0]["lstrip"] = 1; }, "added_tokens[0].lstrip"},
  };
  for (const Fault& fault : faults) {
    Json file = source();
    fault.plant(file);
    const std::string message = tokenizer_error(file.dump());
    EXPECT_NE(message.find("dir/tokenizer.json: "), std::string::npos) << fault.name << ": " << message;
    EXPECT_NE(message.find(fault.key), std::string::npos) << fault.name << ": " << message;
  }
}

TEST(TokenizerFault, BrokenTextsAreRefused) {
  const std::string good = source().dump();
  EXPECT_EQ(tokenizer_error(good), "loaded");
  for (std::size_t length = 0; length < good.size(); length += 97) {
    EXPECT_NE(tokenizer_error(good.substr(0, length)), "loaded") << length;
  }
  EXPECT_NE(tokenizer_error(good + std::string(1, '\0')).find("NUL byte"), std::string::npos);
  EXPECT_NE(tokenizer_error(good + "x").find("broken JSON"), std::string::npos);
  EXPECT_NE(tokenizer_error(std::string(100'000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(tokenizer_error("\"\xFF\"").find("broken JSON"), std::string::npos);
  EXPECT_NE(tokenizer_error("[1e999]").find("out of range"), std::string::npos);
  EXPECT_NE(tokenizer_error("3").find("JSON object"), std::string::npos);
  EXPECT_NE(tokenizer_error(R"({"a": 1, "a": 2})").find("twice"), std::string::npos);
  EXPECT_NE(tokenizer_error(R"({"model": {"vocab": {"a": 1}, "vocab": {"b": 2}}})").find("model.vocab"),
            std::string::npos);
  EXPECT_NE(tokenizer_error(R"({"model": {"vocab": {"a": 1, "a": 2}, "merges": []}, "decoder": {"type": "ByteLevel"},
    "pre_tokenizer": {"type": "ByteLevel"}})")
                .find("twice"),
            std::string::npos);
}

TEST(TokenizerFault, ConfigIsCheckedToo) {
  const std::string good = source().dump();
  for (const char* config :
       {"[]", "{", R"({"bos_token": 3})", R"({"eos_token": "<nope>"})", R"({"add_bos_token": true})",
        R"({"add_bos_token": "yes"})", R"({"bos_token": {"content": null}})"}) {
    EXPECT_NE(tokenizer_error(good, config).find("dir/tokenizer_config.json: "), std::string::npos) << config;
  }
}

TEST(TokenizerFault, MissingFileIsNotFound) {
  const auto tokenizer = Tokenizer::load(test::repo_data("tokenizer/nowhere"));
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().kind, ErrorKind::kNotFound);
  EXPECT_NE(tokenizer.error().message.find("nowhere: no tokenizer, expected tokenizer.json"), std::string::npos);
}

TEST(TokenizerFault, EndlessBacktrackingIsAnErrorNotAHang) {
  Json file = source();
  file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(?:a+)+[^a]";
  const auto tokenizer = Tokenizer::parse(file.dump(), "", "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  const auto ids = tokenizer->encode(std::string(64, 'a'));
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("gave up"), std::string::npos);
}

}  // namespace
}  // namespace latte
