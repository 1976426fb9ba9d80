#include "decode/prompt_cache.h"

#include <gtest/gtest.h>

#include <functional>

#include "io/file_map.h"
#include "support/temp_folder.h"

namespace latte {
namespace {

/// A file of 3 rows in 2 layers of 4 F32, with an MTP layer of 2 rows and one kept row, and 2 rows of a draft model.
PromptCacheHeader small_header() {
  return {
      .row_format = kRowFormat,
      .model = {.family = "deepseek_v3", .directory = "models/a", .config = "c0", .weights = "w0"},
      .computed = "cpu avx2, f32, fast, auto",
      .rows = {.layers = 2, .width = 4, .dtype = "F32", .rows = 3},
      .tokens = 4,
      .generated_from = 2,
      .drafter = "mtp",
      .mtp = MtpHeader{.rows = {.layers = 1, .width = 4, .dtype = "F32", .rows = 2},
                       .first_row = 0,
                       .kept_first = 2,
                       .kept_rows = 1,
                       .kept_row_bytes = 24},
      .draft = DraftHeader{.model = {.family = "deepseek_v3", .directory = "models/b", .config = "c1", .weights = "w1"},
                           .rows = {.layers = 1, .width = 2, .dtype = "BF16", .rows = 2},
                           .first_token = 1}};
}

/// The header as text, changed by the test before it is written.
using Change = std::function<void(Json&)>;

class PromptCacheFormat : public ::testing::Test {
 protected:
  /// Writes the small file with a changed header and sections that fit the unchanged one; every checksum holds.
  Status write(const Change& change = {}, int tokens = 4) {
    Json header = Json::parse(header_text(small_header()));
    if (change) change(header);
    return write_sections({{Section::kHeader, header.dump()},
                           {Section::kNote, "note"},
                           {Section::kTokens, std::string(4 * static_cast<std::size_t>(tokens), '\1')},
                           {Section::kRows, std::string(3 * 2 * 4 * 4, '\2')},
                           {Section::kMtpRows, std::string(2 * 4 * 4, '\3')},
                           {Section::kMtpQueue, std::string(24, '\4')},
                           {Section::kDraftRows, std::string(2 * 2 * 2, '\5')},
                           {Section::kEnd, ""}});
  }
  Status write_sections(const std::vector<std::pair<Section, std::string>>& sections) {
    Result<FileReplacement> file = FileReplacement::begin(path_);
    if (!file.ok()) return file.error();
    SectionWriter writer(*file);
    if (Status begun = writer.preamble(); !begun.ok()) return begun;
    for (const auto& [section, payload] : sections) {
      if (Status written = writer.whole(section, std::as_bytes(std::span(payload))); !written.ok()) return written;
    }
    return file->commit();
  }
  Result<PromptCache> parse() {
    map_.emplace(std::move(FileMap::open(path_)).value());
    return parse_prompt_cache(map_->bytes(), "x.cache");
  }
  void expect_refused(const Change& change, std::string_view part) {
    ASSERT_TRUE(write(change).ok());
    const Result<PromptCache> cache = parse();
    ASSERT_FALSE(cache.ok()) << part;
    EXPECT_EQ(cache.error().message.find("x.cache: "), 0u) << cache.error().message;
    EXPECT_NE(cache.error().message.find(part), std::string::npos) << cache.error().message;
    EXPECT_EQ(cache.error().message.find('\n'), std::string::npos) << cache.error().message;
  }

  test::TempFolder folder_;
  std::string path_ = folder_.file("cache");
  std::optional<FileMap> map_;
};

TEST_F(PromptCacheFormat, WhatIsWrittenIsRead) {
  ASSERT_TRUE(write().ok());
  const Result<PromptCache> cache = parse();
  ASSERT_TRUE(cache.ok()) << cache.error().message;
  EXPECT_EQ(header_text(cache->header), header_text(small_header()));
  EXPECT_EQ(cache->note, "note");
  EXPECT_EQ(cache->tokens, std::vector<TokenId>(4, 0x01010101));
  EXPECT_EQ(cache->rows.size(), 96u);
  EXPECT_EQ(cache->mtp_rows[0], std::byte{3});
  EXPECT_EQ(cache->mtp_queue[23], std::byte{4});
  EXPECT_EQ(cache->draft_rows[7], std::byte{5});
}

TEST_F(PromptCacheFormat, HeadersThatContradictTheSectionsAreRefused) {
  expect_refused([](Json& h) { h["tokens"] = 5; }, "TOKN");
  expect_refused([](Json& h) { h["rows"]["rows"] = 4; }, "ROWS");
  expect_refused([](Json& h) { h["rows"]["width"] = 3; }, "ROWS");
  expect_refused([](Json& h) { h["rows"]["dtype"] = "Q3"; }, "ROWS");
  expect_refused([](Json& h) { h["mtp"]["rows"]["rows"] = 1; }, "MTPR");
  expect_refused([](Json& h) { h["mtp"]["kept_row_bytes"] = 0; }, "MTPQ");
  expect_refused([](Json& h) { h["draft"]["rows"]["layers"] = 2; }, "DRFT");
  expect_refused([](Json& h) { h.erase("mtp"); }, "expected section DRFT");
  expect_refused([](Json& h) { h.erase("draft"); }, "expected section END");
}

TEST_F(PromptCacheFormat, AtMostOneTokenWaitsForItsRow) {
  for (const int tokens : {2, 3, 4, 5}) {
    ASSERT_TRUE(write([&](Json& h) { h["tokens"] = tokens; }, tokens).ok());
    EXPECT_EQ(parse().ok(), tokens == 3 || tokens == 4) << tokens << " tokens for 3 rows";
  }
}

TEST_F(PromptCacheFormat, PlacesThatCannotBeAreRefused) {
  expect_refused([](Json& h) { h["generated_from"] = 5; }, "generated from");
  expect_refused([](Json& h) { h["mtp"]["first_row"] = 2; }, "MTP rows");
  expect_refused([](Json& h) { h["mtp"]["kept_first"] = 3; }, "MTP rows");
  expect_refused([](Json& h) { h["mtp"]["first_row"] = 2147483647; }, "MTP rows");
  expect_refused([](Json& h) { h["draft"]["first_token"] = 2; }, "draft model");
  expect_refused([](Json& h) { h["draft"]["first_token"] = 2147483647; }, "draft model");
}

TEST_F(PromptCacheFormat, HeadersOfAnotherShapeAreRefused) {
  expect_refused([](Json& h) { h = Json::array(); }, "expected an object");
  expect_refused([](Json& h) { h.erase("tokens"); }, "tokens");
  expect_refused([](Json& h) { h["tokens"] = -1; }, "tokens");
  expect_refused([](Json& h) { h["tokens"] = "4"; }, "tokens");
  expect_refused([](Json& h) { h["rows"] = 3; }, "rows");
  expect_refused([](Json& h) { h["rows"]["layers"] = 1 << 20; }, "layers");
  expect_refused([](Json& h) { h["model"] = "x"; }, "model");
  expect_refused([](Json& h) { h["mtp"] = 1; }, "mtp");
}

TEST_F(PromptCacheFormat, SectionsInAnotherOrderAreRefused) {
  ASSERT_TRUE(write_sections({{Section::kNote, "note"}, {Section::kHeader, "{}"}}).ok());
  const Result<PromptCache> cache = parse();
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.error().message.find("expected section HEAD"), std::string::npos) << cache.error().message;
}

TEST_F(PromptCacheFormat, UnknownKeysOfALaterBuildAreLeftOut) {
  ASSERT_TRUE(write([](Json& h) { h["written_by"] = "latte 9"; }).ok());
  EXPECT_TRUE(parse().ok());
}

TEST_F(PromptCacheFormat, RowsOfCodesSayHowTheyAreCut) {
  const auto with = [&](const char* coded, const char* exact) {
    return write([&](Json& header) {
      header["rows"]["dtype"] = "Q8";
      header["rows"]["coded"] = Json::parse(coded);
      header["rows"]["exact"] = Json::parse(exact);
    });
  };
  // Pieces of one code and one bf16 column: 4 + 2 + 1 bytes and one of padding, two of them a row: the file's 16.
  ASSERT_TRUE(with("1", "1").ok());
  const Result<PromptCache> cache = parse();
  ASSERT_TRUE(cache.ok()) << cache.error().message;
  EXPECT_EQ(cache->header.rows.piece, (CodedPiece{1, 1}));
  EXPECT_EQ(cache->header.mtp->rows.piece, CodedPiece{});
  for (const auto& [coded, exact] :
       {std::pair("0", "4"), std::pair("3", "0"), std::pair("2", "1"), std::pair("null", "0"), std::pair("4", "0"),
        std::pair("2147483647", "2147483647"), std::pair("-1", "5")}) {
    ASSERT_TRUE(with(coded, exact).ok());
    EXPECT_FALSE(parse().ok()) << coded << " and " << exact;
  }
}

TEST(PromptCacheRows, EveryDifferenceThatChangesRowsIsNamed) {
  const auto refusal = [](const std::function<void(PromptCacheHeader&)>& change) {
    PromptCacheHeader found = small_header();
    change(found);
    const Status same = check_same_rows(found, small_header(), "x.cache");
    return same.ok() ? std::string() : same.error().message;
  };
  EXPECT_EQ(refusal([](PromptCacheHeader&) {}), "");
  EXPECT_EQ(refusal([](PromptCacheHeader& h) { h.model.directory = "elsewhere"; }), "");
  EXPECT_EQ(refusal([](PromptCacheHeader& h) { h.mtp.reset(); }), "") << "the drafter does not count";
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.row_format = 99; }).find("rows of format 99"), std::string::npos);
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.model.weights = "w9"; }).find("other weights"), std::string::npos);
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.model.config = "c9"; }).find("other configuration"),
            std::string::npos);
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.rows.dtype = "BF16"; }).find("--cache-type"), std::string::npos);
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.rows.piece = {3, 1}; }).find("--cache-type"), std::string::npos);
  EXPECT_NE(refusal([](PromptCacheHeader& h) { h.computed = "cpu avx512, f32, fast, auto"; }).find("cpu avx512"),
            std::string::npos);
}

TEST(MtpPlace, HoldsTogetherOnlyWithinTheQueueAndTheTarget) {
  EXPECT_TRUE(MtpDrafter::holds_together({0, 0}, 0, 0, 0));
  EXPECT_TRUE(MtpDrafter::holds_together({0, 9}, 9, 1, 10));
  EXPECT_TRUE(MtpDrafter::holds_together({0, 0}, 0, 0, 10)) << "a target that grew without its drafter";
  EXPECT_FALSE(MtpDrafter::holds_together({0, 9}, 8, 1, 10)) << "a gap between rows and queue";
  EXPECT_FALSE(MtpDrafter::holds_together({0, 9}, 9, 2, 10)) << "more kept than the target has";
  EXPECT_FALSE(MtpDrafter::holds_together({0, 0}, 5, 4, 10)) << "rows past the queue's end";
  EXPECT_FALSE(MtpDrafter::holds_together({0, 0}, 0, 513, 1000));
  EXPECT_FALSE(MtpDrafter::holds_together({-1, 0}, 1, 0, 10));
}

}  // namespace
}  // namespace latte
