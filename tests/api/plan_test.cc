#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "family_engine.h"
#include "latte/report.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

TEST(Plan, BytesFollowTheGeometry) {
  PlanRequest request;
  request.model = family_folder();
  const Result<PlanReport> report = plan(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->heads, 3);
  EXPECT_EQ(report->latent_bytes_per_token, (32 + 16) * 4 * 4);
  EXPECT_EQ(report->expanded_bytes_per_token, 3 * (24 + 16 + 20) * 4 * 4);
}

TEST(Plan, BytesFollowTheCacheType) {
  PlanRequest request;
  request.model = family_folder();
  const auto row = [&](CacheType type) {
    request.cache = type;
    const Result<PlanReport> report = plan(request);
    EXPECT_TRUE(report.ok() && report->cache == word(type));
    return report.ok() ? std::pair(report->latent_bytes_per_token / 4, report->expanded_bytes_per_token / 4)
                       : std::pair<std::int64_t, std::int64_t>();
  };
  EXPECT_EQ(row(CacheType::kF16), std::pair(std::int64_t{2 * 48}, std::int64_t{3 * 2 * 60}));
  // Codes, a scale and rope in bf16; expanded a key and a value piece of every head.
  EXPECT_EQ(row(CacheType::kQ8),
            std::pair(std::int64_t{32 + 4 + 2 * 16}, std::int64_t{3 * (24 + 4 + 2 * 16 + 20 + 4)}));
  request.cache = CacheType::kFp8;
  const Result<PlanReport> refused = plan(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "[plan] cache type fp8, expected q8, bf16, f16 or f32: choose one of these");
}

TEST(Plan, ConfigurationAloneGivesTheBytesOfTheFiles) {
  PlanRequest files, config;
  files.model = family_folder();
  config.config_file = family_folder() + "/config.json";
  const Result<PlanReport> with = plan(files), without = plan(config);
  ASSERT_TRUE(with.ok() && without.ok());
  // The files also hold the MTP layer's own copies of embedding and head.
  const std::int64_t copies = with->weights_bytes - without->weights_bytes;
  EXPECT_TRUE(copies == 0 || copies == 2 * 272 * 48 * 4) << copies;
}

TEST(Plan, DeepSeekV3CrossoverIsTheDocumentedOne) {
  const char* data = std::getenv("LATTE_TEST_DATA");
  if (data == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
  PlanRequest request;
  request.config_file = std::string(data) + "/models/configs/deepseek-v3/config.json";
  request.new_rows = 171;
  request.cached_rows = 1 << 20;
  const Result<PlanReport> report = plan(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->crossover.size(), 4u);
  EXPECT_EQ(report->crossover[0].max_absorbed_rows, 127);
  EXPECT_EQ(report->crossover[1].max_absorbed_rows, 157);
  EXPECT_EQ(report->crossover[2].max_absorbed_rows, 167);
  EXPECT_EQ(report->crossover[3].max_absorbed_rows, 169);
  EXPECT_EQ(report->limit_rows, 170);
  EXPECT_EQ(report->cold_rows, 1);
  EXPECT_EQ(report->step->form, "materialised");
  EXPECT_EQ(report->latent_bytes_per_token, 576 * 2 * 61);
  EXPECT_NEAR(static_cast<double>(report->weights_bytes), 682e9 * 2, 0.02 * 682e9 * 2);
}

TEST(Plan, SizesBeyondSixtyFourBitsAreRefused) {
  const TempFolder folder;
  std::ifstream file(family_folder() + "/config.json", std::ios::binary);
  const nlohmann::json family = nlohmann::json::parse(file);
  const auto planned = [&](std::vector<std::pair<const char*, std::int64_t>> changes) {
    nlohmann::json json = family;
    for (const auto& [key, value] : changes) json[key] = value;
    PlanRequest request;
    request.config_file = folder.write("config.json", json.dump());
    return plan(request);
  };
  const std::int64_t most = std::numeric_limits<std::int32_t>::max(), half = most / 2;
  EXPECT_TRUE(planned({}).ok());
  EXPECT_TRUE(planned({{"vocab_size", most}}).ok()) << "large, but a number of bytes";
  for (const Result<PlanReport>& broken :
       {planned({{"hidden_size", half}, {"intermediate_size", most}}),
        planned({{"hidden_size", half}, {"vocab_size", most}}), planned({{"hidden_size", half}})}) {
    ASSERT_FALSE(broken.ok());
    EXPECT_EQ(broken.error().kind, ErrorKind::kInvalidInput);
    EXPECT_NE(broken.error().message.find("config.json"), std::string::npos) << broken.error().message;
  }
}

TEST(Plan, StepBeyondAnyCacheIsRefused) {
  PlanRequest request;
  request.model = family_folder();
  request.new_rows = request.cached_rows = std::numeric_limits<std::int64_t>::max();
  EXPECT_FALSE(plan(request).ok());
}

TEST(Plan, StepOfMoreRowsThanTheCacheHoldsIsRefused) {
  PlanRequest request;
  request.model = family_folder();
  request.new_rows = 5;
  request.cached_rows = 4;
  EXPECT_FALSE(plan(request).ok());
  request.cached_rows = 5;
  EXPECT_TRUE(plan(request).ok());
}

}  // namespace
}  // namespace latte::test
