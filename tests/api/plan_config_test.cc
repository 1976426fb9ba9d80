// The plan of every released configuration: known figures of those that latte runs, a refusal by name of the others.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "latte/report.h"

namespace latte::test {
namespace {

struct Figures {
  std::string folder, family;
  std::int64_t values = 0;              // cached per token in the main layers
  std::int64_t mtp_values = 0;          // beside these
  std::vector<std::int64_t> crossover;  // at 512, 2048, 8192, 32768 and in the limit; none: grouped-query attention
  double parameters = 0;                // published count of the main model
  double router_biases = 0;             // beside it: not a parameter where it was counted
};

const Figures kFigures[] = {
    {"deepseek-v2-lite", "deepseek_v2", 576 * 27, 0, {127, 157, 167, 169, 170}, 15'706'484'224},
    {"deepseek-v3", "deepseek_v3", 576 * 61, 576, {127, 157, 167, 169, 170}, 671'026'404'352},
    {"moonlight-16b-a3b", "deepseek_v3", 576 * 27, 0, {127, 157, 167, 169, 170}, 15'960'108'544, 26 * 64},
    {"kimi-k2", "deepseek_v3", 576 * 61, 0, {127, 157, 167, 169, 170}, 1'026'408'209'408, 60 * 384},
    {"glm-4.7-flash", "glm4_moe_lite", 576 * 47, 576, {223, 333, 379, 393, 398}, 29'943'390'976},
    {"youtu-llm-2b", "youtu", 576 * 32, 0, {127, 157, 167, 169, 170}, 1'961'560'064},
    {"minicpm3-4b", "minicpm3", 288 * 62, 0, {73, 81, 84, 85, 85}, 4'073'875'968},
    {"qwen3-8b", "qwen3", 2 * 8 * 128 * 36, 0, {}, 8'190'735'360},
    {"llama-3.1-8b", "llama", 2 * 8 * 128 * 32, 0, {}, 8'030'261'248},
};

struct Refusal {
  std::string folder, family;
};

const Refusal kRefusals[] = {
    {"deepseek-v3.2", "deepseek_v32"},
    {"glm-5", "glm_moe_dsa"},
    {"glm-5.3-flash", "glm5_next"},
    {"kimi-k3", "kimi_k3"},
    {"kimi-linear-48b-a3b", "kimi_linear"},
    {"ling-3.0-flash", "bailing_moe_v3"},
    {"ling-3.0-tiny", "bailing_moe_v3"},
    {"longcat-flash", "longcat_flash"},
    {"longcat-flash-lite", "longcat_flash_ngram"},
    {"longcat-flash-lite-sparse", "longcat_flash_sparse"},
};

std::optional<std::filesystem::path> models_folder() {
  const char* data = std::getenv("LATTE_TEST_DATA");
  if (data == nullptr) return std::nullopt;
  return std::filesystem::path(data) / "models";
}

Result<PlanReport> plan_of(const std::filesystem::path& folder) {
  PlanRequest request;
  request.config_file = (folder / "config.json").string();
  return plan(request);
}

TEST(PlanConfigs, KnownFiguresOfDenseModels) {
  const auto models = models_folder();
  if (!models.has_value())
    GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  for (const Figures& known : kFigures) {
    const Result<PlanReport> report = plan_of(*models / "configs" / known.folder);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->family, known.family) << known.folder;
    EXPECT_EQ(report->cache_values_per_token, known.values) << known.folder;
    EXPECT_EQ(report->mtp_cache_values_per_token, known.mtp_values) << known.folder;
    EXPECT_EQ(report->latent_bytes_per_token, 2 * known.values) << known.folder;
    EXPECT_EQ(report->attention, known.crossover.empty() ? "gqa" : "mla");
    std::vector<std::int64_t> crossover;
    for (const CrossoverRow& row : report->crossover) crossover.push_back(row.max_absorbed_rows.value_or(-1));
    if (report->limit_rows.has_value()) crossover.push_back(*report->limit_rows);
    EXPECT_EQ(crossover, known.crossover) << known.folder;
    const double elements = static_cast<double>(report->weights_bytes) / 2;
    if (known.mtp_values == 0) {
      EXPECT_EQ(elements, known.parameters + known.router_biases) << known.folder;
    } else {
      EXPECT_GT(elements, known.parameters) << known.folder;
      EXPECT_LT(elements, 1.05 * known.parameters) << known.folder;
    }
  }
}

TEST(PlanConfigs, SparseAndHybridModelsAreRefusedByName) {
  const auto models = models_folder();
  if (!models.has_value())
    GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  for (const Refusal& known : kRefusals) {
    const Result<PlanReport> report = plan_of(*models / "configs" / known.folder);
    ASSERT_FALSE(report.ok()) << known.folder;
    EXPECT_EQ(report.error().kind, ErrorKind::kUnsupported);
    EXPECT_NE(report.error().message.find("is family " + known.family + ", which latte does not run: "),
              std::string::npos)
        << report.error().message;
    EXPECT_NE(report.error().message.find("the nearest that it runs is \""), std::string::npos);
  }
  for (const char* family : {"deepseek_v32", "glm_moe_dsa", "glm5_next", "kimi_linear", "kimi_k3", "longcat_flash",
                             "longcat_flash_ngram", "longcat_flash_sparse", "bailing_moe_v3", "qwen3_next"}) {
    const Result<PlanReport> report = plan_of(*models / "families" / family);
    ASSERT_FALSE(report.ok()) << family;
    EXPECT_NE(report.error().message.find("is family " + std::string(family) + ","), std::string::npos)
        << report.error().message;
  }
}

TEST(PlanConfigs, EveryReleasedConfigurationIsInOneOfTheTables) {
  const auto models = models_folder();
  if (!models.has_value())
    GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  std::set<std::string> known, found;
  for (const Figures& figures : kFigures) known.insert(figures.folder);
  for (const Refusal& refusal : kRefusals) known.insert(refusal.folder);
  for (const auto& entry : std::filesystem::directory_iterator(*models / "configs")) {
    if (entry.is_directory()) found.insert(entry.path().filename().string());
  }
  EXPECT_EQ(found, known);
}

TEST(PlanConfigs, StepOfGroupedQueryAttentionHasNothingToChoose) {
  const auto models = models_folder();
  if (!models.has_value())
    GTEST_SKIP() << "LATTE_TEST_DATA is not set: released configurations are not in the repository";
  PlanRequest request;
  request.config_file = (*models / "configs/llama-3.1-8b/config.json").string();
  request.new_rows = 5;
  request.cached_rows = 100;
  const Result<PlanReport> report = plan(request);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->step->form, "gqa");
  EXPECT_EQ(report->kv_heads, 8);
  EXPECT_EQ(report->head_dim, 128);
  EXPECT_TRUE(report->crossover.empty());
}

}  // namespace
}  // namespace latte::test
