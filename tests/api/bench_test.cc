#include "latte/bench.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/bench_model.h"
#include "api/bench_paths.h"
#include "family_engine.h"
#include "support/chat_model.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

using Numbers = std::vector<int>;

Numbers list(std::string_view text) {
  const Result<Numbers> numbers = parse_bench_list(text);
  if (!numbers.ok()) ADD_FAILURE() << numbers.error().message;
  return numbers.ok() ? *numbers : Numbers{};
}

TEST(BenchList, ReadsNumbersRangesAndFactors) {
  EXPECT_EQ(list("512"), Numbers({512}));
  EXPECT_EQ(list("128,512"), Numbers({128, 512}));
  EXPECT_EQ(list("1-4"), Numbers({1, 2, 3, 4}));
  EXPECT_EQ(list("0-1024+512"), Numbers({0, 512, 1024}));
  EXPECT_EQ(list("1-16*2"), Numbers({1, 2, 4, 8, 16}));
  EXPECT_EQ(list("0,1-9*3,7"), Numbers({0, 1, 3, 9, 7}));
}

TEST(BenchList, RefusesTheRestInOneLine) {
  for (const char* text : {"", ",", "1,", "x", "-1", "1-", "4-1", "1-4+", "1-4+0", "0-8*2", "1-8*1", "1-8*", "1-4x2",
                           "1 ,2", "99999999999", "0-16777216", "1.5", "1-2-3", "+3"}) {
    const Result<Numbers> numbers = parse_bench_list(text);
    ASSERT_FALSE(numbers.ok()) << text;
    EXPECT_NE(numbers.error().message.find("expected a number"), std::string::npos) << numbers.error().message;
    EXPECT_EQ(numbers.error().message.find('\n'), std::string::npos);
  }
}

BenchRequest family_request() {
  BenchRequest request;
  request.engine = family_options();
  request.prompt_rows = {20};
  request.generated_rows = {3};
  request.verify_rows = {4};
  request.depths = {0, 24};
  request.repetitions = 2;
  return request;
}

BenchReport report_of(const BenchRequest& request) {
  Result<BenchReport> report = measure_steps(request);
  if (!report.ok()) ADD_FAILURE() << report.error().message;
  return report.ok() ? std::move(report).value() : BenchReport{};
}

const BenchRow& row_of(const BenchReport& report, const std::string& test, const std::string& arm = "") {
  for (const BenchRow& row : report.rows) {
    if (row.test == test && (arm.empty() || row.arm == arm)) return row;
  }
  ADD_FAILURE() << "no row " << test;
  static const BenchRow none;
  return none;
}

TEST(Bench, MeasuresEveryTestAtEveryDepth) {
  const BenchReport report = report_of(family_request());
  ASSERT_EQ(report.rows.size(), 6u) << "steps of 1 and 2 rows, which nobody asked for, are not shown";
  for (const BenchRow& row : report.rows) {
    EXPECT_GT(row.tokens_per_second, 0) << row.test;
    EXPECT_GE(row.median_seconds, row.min_seconds) << row.test;
    EXPECT_GE(row.samples, 2) << row.test;
    EXPECT_GT(row.bytes_moved, 0) << row.test;
    EXPECT_GT(row.roof_share, 0) << row.test;
    EXPECT_EQ(row.cache, row.depth == 0 ? "empty" : "prompt");
    EXPECT_FALSE(row.acceptance.has_value());
  }
  const BenchRow& generated = row_of(report, "tg3 @ d24");
  EXPECT_EQ(generated.arm, "absorbed");
  EXPECT_EQ(generated.paths.absorbed_steps, 6);
  EXPECT_EQ(generated.paths.absorbed_rows, 6);
  EXPECT_EQ(row_of(report, "pp20").arm, "materialised");
  EXPECT_TRUE(row_of(report, "v4 @ d24").second_row_cost.has_value());
  EXPECT_FALSE(generated.second_row_cost.has_value());
  EXPECT_GT(report.read_gbytes_per_second, 0);
}

TEST(Bench, BytesAreTheWeightsInUseAndTheCachedRows) {
  BenchRequest request = family_request();
  request.prompt_rows = {};
  request.generated_rows = {1};
  request.verify_rows = {1, 16};
  request.depths = {0, 32};
  const BenchReport report = report_of(request);
  const BenchRow &one = row_of(report, "tg1"), &deep = row_of(report, "tg1 @ d32"), &wide = row_of(report, "v16");
  EXPECT_EQ(row_of(report, "v1").bytes_moved, one.bytes_moved);
  EXPECT_LT(one.bytes_moved, report.weight_bytes) << "experts that no row chose are not read";
  EXPECT_GT(wide.bytes_moved, one.bytes_moved) << "sixteen rows choose more experts";
  // Other ids may choose other experts, all of them of one size.
  EXPECT_EQ(deep.bytes_moved - one.bytes_moved, 32 * one.kv_bytes_per_token);
}

TEST(Bench, AForcedFormIsWhatTheRowClaims) {
  BenchRequest request = family_request();
  request.engine.path = PathChoice::kMaterialised;
  const BenchReport report = report_of(request);
  EXPECT_EQ(row_of(report, "tg3").arm, "materialised");
  EXPECT_EQ(row_of(report, "tg3").paths.absorbed_steps, 0);
}

TEST(Bench, ACounterThatContradictsTheRowIsAnError) {
  const PathCounts claimed{.absorbed_steps = 3, .absorbed_rows = 3};
  EXPECT_TRUE(check_paths("tg3", claimed, 2, {.absorbed_steps = 6, .absorbed_rows = 6}).ok());
  const PathCounts wrong[] = {
      {.absorbed_steps = 5, .absorbed_rows = 5, .materialised_steps = 1, .materialised_rows = 1},
      {.absorbed_steps = 6, .absorbed_rows = 6, .materialised_steps = 1, .materialised_rows = 1},
      {.absorbed_steps = 6, .absorbed_rows = 12},
      {.gqa_steps = 6, .gqa_rows = 6},
      {}};
  for (const PathCounts& counted : wrong) {
    const Status checked = check_paths("tg3 @ d512", claimed, 2, counted);
    ASSERT_FALSE(checked.ok());
    EXPECT_NE(checked.error().message.find("tg3 @ d512"), std::string::npos) << checked.error().message;
    EXPECT_EQ(checked.error().message.find('\n'), std::string::npos);
  }
}

TEST(Bench, ASpeculatingRunTakesItsOwnFormAlone) {
  const PathCounts claimed{.absorbed_steps = 1, .absorbed_rows = 1};
  EXPECT_TRUE(check_forms("tg8", claimed, {.absorbed_steps = 5, .absorbed_rows = 9}).ok());
  EXPECT_FALSE(check_forms("tg8", claimed, {.absorbed_steps = 5, .absorbed_rows = 9, .materialised_steps = 1}).ok());
  EXPECT_FALSE(check_forms("tg8", claimed, {}).ok());
}

TEST(Bench, ARequestThatDoesNotHoldTogetherIsAnError) {
  const auto message = [](auto change) {
    BenchRequest request = family_request();
    change(request);
    const Result<BenchReport> report = measure_steps(request);
    return report.ok() ? std::string("no error") : report.error().message;
  };
  EXPECT_NE(message([](BenchRequest& r) { r.verify_rows = {17}; }).find("1 to 16"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.repetitions = 0; }).find("at least 1"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.layers = 1; }).find("config file"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.engine.model.clear(); }).find("either"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) {
              r.prompt_rows = r.verify_rows = {};
              r.generated_rows = {0};
            }).find("no test"),
            std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.speculation = SessionOptions{}; }).find("a text"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.text = "words"; }).find("no tokenizer"), std::string::npos);
  EXPECT_NE(message([](BenchRequest& r) { r.engine.device = "cuda"; }).find("cuda"), std::string::npos);
}

std::string config_of(const std::string& family) {
  const auto folder = family_folder(family);
  return folder.has_value() ? *folder + "/config.json" : "";
}

BenchRequest random_request(const std::string& config, int layers) {
  BenchRequest request = family_request();
  request.engine.model.clear();
  request.config_file = config;
  request.layers = layers;
  request.repetitions = 1;
  return request;
}

TEST(Bench, RandomWeightsRunEveryDenseFamily) {
  for (const char* family :
       {"deepseek_v3", "kimi_k2", "moonlight", "deepseek_v2_full", "deepseek_v2_lite", "glm4_moe_lite", "youtu",
        "minicpm3", "minicpm3_longrope", "minicpm3_untied", "llama", "qwen2", "qwen3", "qwen3_moe", "dots1"}) {
    const std::string config = config_of(family);
    if (!std::filesystem::exists(config))
      continue;  // RandomWeightsOfTheCommittedFamilies has those that are always there
    for (const int layers : {1, 2}) {
      const BenchReport report = report_of(random_request(config, layers));
      ASSERT_EQ(report.rows.size(), 6u) << family;
      EXPECT_EQ(report.layers, layers) << family;
      EXPECT_EQ(row_of(report, "tg3 @ d24").cache, "synthetic") << family;
      EXPECT_EQ(row_of(report, "tg3").cache, "empty") << family;
      EXPECT_NE(report.model.find("random"), std::string::npos);
    }
  }
}

TEST(Bench, RandomWeightsOfTheCommittedFamilies) {
  for (const char* family : {"deepseek_v3", "kimi_k2", "moonlight"}) {
    const BenchReport report = report_of(random_request(config_of(family), 1));
    ASSERT_EQ(report.rows.size(), 6u) << family;
    EXPECT_NE(report.model.find("(1 of "), std::string::npos) << report.model;
    EXPECT_GT(report.weight_bytes, 0);
  }
}

TEST(Bench, RandomWeightsRunOnTheReferenceToo) {
  BenchRequest request = random_request(config_of("deepseek_v3"), 1);
  request.engine.device = "reference";
  EXPECT_EQ(report_of(request).rows.size(), 6u);
}

TEST(Bench, WhatDoesNotFitIsRefusedWithTheNumbers) {
  const Status refused = check_memory("deepseek-v3: weights", 1'342'000'000'000, 20'000'000'000, "use --layers 1");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(refused.error().message,
            "[bench] deepseek-v3: weights: 1342.0 GB in all, 20.0 GB of memory are free: use --layers 1");
  EXPECT_TRUE(check_memory("x", 1, 20'000'000'000, "").ok());
  EXPECT_TRUE(check_memory("x", 1, 0, "").ok()) << "a system that does not tell refuses nothing";
}

TEST(Bench, AModelBeyondTheMemoryIsRefusedBeforeAnyIsTaken) {
  const char* data = std::getenv("LATTE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "no LATTE_TEST_DATA with released configurations";
  const Result<BenchReport> report =
      measure_steps(random_request(std::string(data) + "/models/configs/deepseek-v3/config.json", 0));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_NE(report.error().message.find("671.0"), std::string::npos) << report.error().message;
  EXPECT_NE(report.error().message.find("--layers"), std::string::npos) << report.error().message;
}

TEST(Bench, LayersBeyondTheModelAreAnError) {
  const Result<BenchReport> report = measure_steps(random_request(config_of("deepseek_v3"), 1000));
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("1000 layers"), std::string::npos) << report.error().message;
}

class BenchText : public ::testing::Test {
 protected:
  void SetUp() override {
    write_chat_model(folder_.path(), family_folder(), "");
    request_ = family_request();
    request_.engine.model = folder_.path();
    request_.prompt_rows = request_.verify_rows = {};
    for (int i = 0; i < 60; ++i) request_.text += "the same words again, and ";
  }

  TempFolder folder_;
  BenchRequest request_;
};

TEST_F(BenchText, DrafterAndPlainReplayTheSameText) {
  request_.generated_rows = {12};
  for (const SpecType type : {SpecType::kMtp, SpecType::kLookup}) {
    request_.speculation = SessionOptions{.spec = type, .num_draft_tokens = std::nullopt};
    const BenchReport report = report_of(request_);
    ASSERT_EQ(report.rows.size(), 4u);
    for (const char* test : {"tg12", "tg12 @ d24"}) {
      const BenchRow &plain = row_of(report, test, "plain"), &drafting = row_of(report, test, std::string(word(type)));
      EXPECT_EQ(plain.paths.absorbed_steps, 24) << "one step a token";
      EXPECT_FALSE(plain.acceptance.has_value());
      ASSERT_TRUE(drafting.acceptance.has_value());
      EXPECT_LE(drafting.paths.absorbed_steps, 24);
      EXPECT_GE(*drafting.emitted_per_round, 1);
    }
    if (type == SpecType::kLookup) {
      EXPECT_GT(*row_of(report, "tg12 @ d24", "lookup").acceptance, 0.5) << "the text repeats itself";
    }
  }
}

TEST_F(BenchText, ATextTooShortIsAnError) {
  request_.text = "too short";
  request_.speculation = SessionOptions{.spec = SpecType::kLookup, .num_draft_tokens = std::nullopt};
  const Result<BenchReport> report = measure_steps(request_);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("a longer file"), std::string::npos) << report.error().message;
}

TEST(BenchAttention, ThreeArmsTakeTurnsOverEveryCell) {
  BenchRequest request = family_request();
  request.verify_rows = {1, 40};
  request.depths = {0, 100};
  const Result<BenchReport> report = measure_attention(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->rows.size(), 12u);
  for (const char* arm : {"expanded", "materialised", "absorbed"}) {
    const BenchRow& row = row_of(*report, "attn40 @ d100", arm);
    EXPECT_EQ(row.samples, 2);
    EXPECT_GT(row.median_seconds, 0);
    EXPECT_GT(row.bytes_moved, 0);
    const double reading = static_cast<double>(row.bytes_moved) * 1e-9 / report->read_gbytes_per_second;
    const double computing = static_cast<double>(row.operations) * 1e-9 / report->peak_gops;
    EXPECT_GE(row.floor_seconds, std::max(reading, computing) * (1 - 1e-9));
    EXPECT_LE(row.floor_seconds, (reading + computing) * (1 + 1e-9)) << "a sum of two parts, each one of the two";
    if (row.arm == "expanded") {
      EXPECT_DOUBLE_EQ(row.floor_seconds, std::max(reading, computing));
    }
  }
  EXPECT_NE(report->peak_instruction, "");
  const BenchRow &expanded = row_of(*report, "attn1", "expanded"), &absorbed = row_of(*report, "attn1", "absorbed");
  EXPECT_EQ(row_of(*report, "attn1", "materialised").kv_bytes_per_token, absorbed.kv_bytes_per_token);
  EXPECT_GT(expanded.kv_bytes_per_token, absorbed.kv_bytes_per_token);
  EXPECT_EQ(absorbed.paths.absorbed_steps, 2);
  EXPECT_EQ(row_of(*report, "attn1", "materialised").paths.materialised_steps, 2);
}

TEST(BenchAttention, AForcedFormIsTheOnlyArm) {
  for (const auto& [path, arm] :
       {std::pair(PathChoice::kAbsorbed, "absorbed"), std::pair(PathChoice::kMaterialised, "materialised")}) {
    BenchRequest request = family_request();
    request.engine.path = path;
    request.verify_rows = {1, 3};
    request.depths = {64};
    const Result<BenchReport> report = measure_attention(request);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->rows.size(), 2u);
    for (const BenchRow& row : report->rows) EXPECT_EQ(row.arm, arm);
  }
}

TEST(BenchAttention, RunsOnTheReferenceAndInF32) {
  BenchRequest request = family_request();
  request.engine.device = "reference";
  const Result<BenchReport> reference = measure_attention(request);
  ASSERT_TRUE(reference.ok());
  EXPECT_EQ(reference->peak_gops, 0);
  EXPECT_GT(reference->rows.front().floor_seconds, 0) << "the bytes'";
  request.engine.device = "cpu";
  request.engine.cache = CacheType::kF32;
  EXPECT_TRUE(measure_attention(request).ok());
}

TEST(BenchAttention, RowsOfEveryTypeAreWhatIsMoved) {
  BenchRequest request = family_request();
  request.verify_rows = {1};
  request.depths = {0};
  for (const auto& [type, bytes] : {std::pair(CacheType::kQ8, 4 + 2 * 16 + 32), std::pair(CacheType::kF16, 2 * 48)}) {
    request.engine.cache = type;
    const Result<BenchReport> report = measure_attention(request);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->type, word(type));
    EXPECT_EQ(report->cache_type, word(type));
    EXPECT_EQ(row_of(*report, "attn1", "absorbed").kv_bytes_per_token, 4 * bytes);
  }
}

TEST(BenchAttention, GroupedQueriesHaveNoFormsToCompare) {
  const std::string config = config_of("qwen3");
  if (!std::filesystem::exists(config)) GTEST_SKIP() << "no LATTE_TEST_DATA with families";
  BenchRequest request = random_request(config, 0);
  const Result<BenchReport> report = measure_attention(request);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("grouped-query"), std::string::npos) << report.error().message;
}

}  // namespace
}  // namespace latte::test
