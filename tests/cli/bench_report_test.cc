#include "cli/bench_report.h"

#include <gtest/gtest.h>

#include <string>

namespace latte::cli {
namespace {

BenchReport report_of(double second_row_cost) {
  BenchReport report;
  report.rows.emplace_back();
  report.rows.front().test = "v2 @ d24";
  report.rows.front().depth = 24;
  report.rows.front().second_row_cost = second_row_cost;
  return report;
}

TEST(BenchText, ASecondRowThatCostsSaysHowMuch) {
  const std::string text = bench_text(report_of(0.123), "md");
  EXPECT_NE(text.find("second row of a verify step at depth 24: +12% of the first\n"), std::string::npos) << text;
}

TEST(BenchText, ASecondRowThatSeemsToSaveTimeIsNoise) {
  const std::string text = bench_text(report_of(-0.081), "md");
  EXPECT_NE(text.find("at depth 24: nothing beyond the noise, which is 8% of the first or more\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("-8%"), std::string::npos) << text;
  EXPECT_NE(bench_text(report_of(-0.081), "json").find("\"second_row_cost\": -0.081"), std::string::npos)
      << "programs get what was measured";
}

TEST(BenchText, AnAttentionCallShowsItsFloorAndItsShareOfIt) {
  BenchReport report;
  report.peak_gops = 160;
  report.peak_instruction = "vfmadd ymm";
  BenchRow row;
  row.test = "attn8 @ d64";
  row.arm = "absorbed";
  row.median_seconds = 0.008;
  row.min_seconds = 0.005;
  row.floor_seconds = 0.002;
  row.operations = 480'000'000;
  report.rows.push_back(row);
  const std::string text = bench_text(report, "md");
  EXPECT_NE(text.find("| 60.0 | 2.000 | 25% |\n"), std::string::npos) << text;
  EXPECT_NE(text.find("the operations at 160 GFLOP/s (vfmadd ymm over registers)"), std::string::npos) << text;
  const std::string json = bench_text(report, "json");
  EXPECT_NE(json.find("\"floor_seconds\": 0.002"), std::string::npos) << json;
  EXPECT_NE(json.find("\"operations\": 480000000"), std::string::npos) << json;
}

}  // namespace
}  // namespace latte::cli
