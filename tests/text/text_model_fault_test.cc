#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "text/sentencepiece_proto.h"
#include "text/text_data.h"
#include "text/tokenizer.h"
#include "text/tokenizer_calls.h"

namespace latte {
namespace {

using Type = SentencePieceProto::Type;

std::string model_error(TokenizerKind kind, const std::string& content, const std::string& config = "") {
  return test::load_error(Tokenizer::parse(kind, content, config, "dir/file"));
}

std::string kimi_file() { return test::read_file(test::repo_data("tokenizer/kimi/tiktoken.model")); }

std::string tiktoken_error(const std::string& content, const std::string& config = "") {
  return model_error(TokenizerKind::kTiktoken, content, config);
}

TEST(TiktokenFault, EachIsOneErrorThatNamesFileAndLine) {
  const std::string good = kimi_file();
  EXPECT_EQ(tiktoken_error(good), "loaded");
  const struct {
    const char* line;
    const char* expected;
  } faults[] = {
      {"nonsense", "line 1501 is \"nonsense\""},
      {"YWJj", "line 1501"},
      {"YWI 5000", "line 1501"},
      {"YW=j 5000", "line 1501"},
      {"YWI= 5000 ", "line 1501"},
      {"YWI= -1", "line 1501"},
      {"YWI= 1.5", "line 1501"},
      {"YWI= 99999999999999999999", "line 1501"},
      {"YWI= 4000000000", "line 1501: rank 4000000000, expected 0 to"},
      {"YQ== 5000", "line 1501: token \"a\" has a rank already"},
      {"enp6enp6 0", "ranks: id 0 of token \"zzzzzz\" belongs to another"},
      {" 5000", "line 1501"},
  };
  for (const auto& fault : faults) {
    const std::string message = tiktoken_error(good + fault.line + "\n");
    EXPECT_EQ(message.rfind("dir/file: ", 0), 0u) << fault.line << ": " << message;
    EXPECT_NE(message.find(fault.expected), std::string::npos) << fault.line << ": " << message;
  }
  EXPECT_NE(tiktoken_error("").find("no line of 0 has the byte 00"), std::string::npos);
  EXPECT_NE(tiktoken_error(good.substr(good.find('\n') + 1)).find("expected a token for each byte"), std::string::npos);
  EXPECT_NE(tiktoken_error(std::string("AA== 0\n\xFF\n\x00", 11)).find("line 2"), std::string::npos);
}

TEST(TiktokenFault, LineEndsOfBothKindsAndBlankLinesAreRead) {
  std::string file;
  for (const char c : kimi_file()) file += c == '\n' ? std::string("\r\n\n") : std::string(1, c);
  EXPECT_EQ(tiktoken_error(file), "loaded");
}

TEST(TiktokenFault, ConfigurationIsCheckedToo) {
  for (const char* config : {
           R"({"added_tokens_decoder": []})",
           R"({"added_tokens_decoder": {"x": {"content": "<a>"}}})",
           R"({"added_tokens_decoder": {"-1": {"content": "<a>"}}})",
           R"({"added_tokens_decoder": {"99999999999999": {"content": "<a>"}}})",
           R"({"added_tokens_decoder": {"99999999": {"content": "<a>"}}})",
           R"({"added_tokens_decoder": {"5000": 3}})",
           R"({"added_tokens_decoder": {"5000": {"content": ""}}})",
           R"({"added_tokens_decoder": {"5000": {"content": "<a>"}, "05000": {"content": "<b>"}}})",
           R"({"added_tokens_decoder": {"5000": {"content": "<a>", "lstrip": 1}}})",
           R"({"bos_token": "[NONE]"})",
       }) {
    EXPECT_EQ(tiktoken_error(kimi_file(), config).rfind("dir/tokenizer_config.json: ", 0), 0u) << config;
  }
  EXPECT_NE(tiktoken_error(kimi_file(), R"({"added_tokens_decoder": {"3": {"content": "<a>"}}})").find("id 3"),
            std::string::npos);
}

SentencePieceProto proto_of(const std::string& folder) {
  const auto proto =
      SentencePieceProto::parse(test::read_file(test::repo_data("tokenizer/" + folder + "/tokenizer.model")), "file");
  EXPECT_TRUE(proto.ok()) << proto.error().message;
  return proto.value();
}

std::string proto_error(const SentencePieceProto& proto) {
  return model_error(TokenizerKind::kSentencePiece, proto.serialize());
}

TEST(SentencePieceFault, WhatIsWrittenIsReadAgain) {
  for (const char* folder : {"sentencepiece", "unigram"}) {
    const SentencePieceProto proto = proto_of(folder);
    const auto again = SentencePieceProto::parse(proto.serialize(), "file");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->serialize(), proto.serialize());
    EXPECT_EQ(again->pieces.size(), proto.pieces.size());
    EXPECT_EQ(proto_error(proto), "loaded");
  }
}

TEST(SentencePieceFault, EachPieceIsChecked) {
  const struct {
    SentencePieceProto::Piece piece;
    const char* expected;
  } faults[] = {
      {{"", -1, Type::kNormal}, "piece 600 is \"\""},
      {{"\xFF", -1, Type::kNormal}, "piece 600 is "},
      {{std::string("a\0b", 3), -1, Type::kNormal}, "piece 600 is "},
      {{"qqq", NAN, Type::kNormal}, "piece 600: score"},
      {{"qqq", INFINITY, Type::kNormal}, "piece 600: score"},
      {{"qqq", 0, static_cast<Type>(7)}, "piece 600: type 7"},
      {{"qqq", 0, Type::kByte}, "piece 600 is the byte \"qqq\""},
      {{"<0x41>", 0, Type::kByte}, "SentencePiece library refuses"},
      {{"<unk2>", 0, Type::kUnknown}, "2 pieces of the type unknown"},
      {{"<s>", 0, Type::kControl}, "token \"<s>\" is given twice"},
  };
  for (const auto& fault : faults) {
    SentencePieceProto proto = proto_of("unigram");
    ASSERT_EQ(proto.pieces.size(), 600u);
    proto.pieces.push_back(fault.piece);
    const std::string message = proto_error(proto);
    EXPECT_EQ(message.rfind("dir/file: ", 0), 0u) << message;
    EXPECT_NE(message.find(fault.expected), std::string::npos) << message;
  }
  SentencePieceProto bare = proto_of("sentencepiece");
  std::erase_if(bare.pieces, [](const auto& piece) { return piece.type == Type::kByte; });
  EXPECT_NE(proto_error(bare).find("SentencePiece library refuses"), std::string::npos);
  bare.pieces.clear();
  EXPECT_NE(proto_error(bare).find("without a piece"), std::string::npos);
}

TEST(SentencePieceFault, BrokenBytesAreRefusedAtTheirPlace) {
  const std::string good = test::read_file(test::repo_data("tokenizer/unigram/tokenizer.model"));
  for (std::size_t length = 0; length < good.size(); length += 61) {
    // A cut between two pieces leaves a smaller model; every other one is an error.
    const std::string message = model_error(TokenizerKind::kSentencePiece, good.substr(0, length));
    if (message != "loaded") {
      EXPECT_EQ(message.rfind("dir/file: ", 0), 0u) << message;
    }
  }
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, good + "\x0F").find("byte " + std::to_string(good.size())),
            std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, "\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7Fx").find("byte 0"),
            std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, "").find("0 bytes without a piece"), std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, "{\"model\": 1}").find("dir/file: "), std::string::npos);
}

TEST(SentencePieceFault, BrokenCharsmapsAreRefused) {
  const std::string good = proto_of("unigram").charsmap;
  ASSERT_GT(good.size(), 1000u);
  EXPECT_TRUE(is_safe_charsmap(good));
  EXPECT_TRUE(is_safe_charsmap(""));
  EXPECT_FALSE(is_safe_charsmap(good.substr(0, 4)));
  EXPECT_FALSE(is_safe_charsmap(good.substr(0, good.size() - 1)));
  std::string large = good;
  large[2] = '\x7F';  // the trie would end beyond the file
  EXPECT_FALSE(is_safe_charsmap(large));
  std::string away = good;
  away.replace(4, 4, std::string("\x00\x00\xFF\x7F", 4));  // the root's children lie outside
  EXPECT_FALSE(is_safe_charsmap(away));
  const auto unit = [](std::uint32_t offset, bool leaf, char label) {
    const std::uint32_t value = offset << 10 | (leaf ? 1u << 8 : 0u) | static_cast<unsigned char>(label);
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift & 0xFF));
    return bytes;
  };
  // Unit 'a' of the root's children; its own children begin at offset 'a' ^ target.
  std::string units = unit(0, false, 0);
  for (int i = 1; i < 256; ++i) units += i == 'a' ? unit('a', false, 'a') : unit(0, false, 0);
  const auto charsmap = [](const std::string& trie) {
    std::string bytes;
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(trie.size() >> shift & 0xFF));
    return bytes + trie + std::string("x\0", 2);
  };
  EXPECT_FALSE(is_safe_charsmap(charsmap(units))) << "a walk of the letter a would go round for ever";
  SentencePieceProto proto = proto_of("unigram");
  proto.charsmap = charsmap(units);
  EXPECT_NE(proto_error(proto).find("precompiled_charsmap"), std::string::npos);
}

TEST(SentencePieceFault, SettingsThatAreNotFollowedAreRefused) {
  const std::string good = test::read_file(test::repo_data("tokenizer/unigram/tokenizer.model"));
  EXPECT_NE(
      model_error(TokenizerKind::kSentencePiece, good + "\x12\x03\xC0\x01\x01").find("treat_whitespace_as_suffix"),
      std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, good + "\x12\x02\x18\x03").find("model_type 3"),
            std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, good, R"({"legacy": false})").find("remove_extra_whitespaces"),
            std::string::npos);
  EXPECT_NE(model_error(TokenizerKind::kSentencePiece, good, R"({"legacy": 3})").find("legacy is a number"),
            std::string::npos);
}

TEST(TokenizerLoad, FilesAreTakenInTheirOrder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "latte_tokenizer_order";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const auto copy = [&](const char* from, const char* to) {
    fs::copy_file(test::repo_data(std::string("tokenizer/") + from), folder / to, fs::copy_options::overwrite_existing);
  };
  const auto loaded = [&] {
    const auto tokenizer = Tokenizer::load(folder.string());
    if (!tokenizer.ok()) return tokenizer.error().message;
    return tokenizer->file().substr(folder.string().size()) + " " + std::to_string(tokenizer->vocab_size());
  };
  EXPECT_NE(loaded().find("no tokenizer, expected tokenizer.json, tokenizer.model or tiktoken.model"),
            std::string::npos);
  copy("kimi/tiktoken.model", "tiktoken.model");
  EXPECT_EQ(loaded(), "/tiktoken.model 1500");
  copy("kimi/tiktoken.model", "tokenizer.model");
  EXPECT_EQ(loaded(), "/tokenizer.model 1500");
  copy("unigram/tokenizer.model", "tokenizer.model");
  EXPECT_EQ(loaded(), "/tokenizer.model 600");
  copy("small/tokenizer.json", "tokenizer.json");
  EXPECT_EQ(loaded().rfind("/tokenizer.json ", 0), 0u);
  std::ofstream(folder / "tokenizer.json") << "";
  EXPECT_NE(loaded().find("/tokenizer.json: broken JSON"), std::string::npos) << "a broken file is no absent one";
  fs::remove_all(folder);
}

}  // namespace
}  // namespace latte
