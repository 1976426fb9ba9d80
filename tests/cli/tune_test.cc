#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "run_program.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

class Tune : public ::testing::Test {
 protected:
  /// Runs with a cache directory of the test's own and calibration as users have it.
  Outcome latte(const std::vector<std::string>& words) const {
    RunHow how;
    how.environment = {"XDG_CACHE_HOME=" + folder_.path(), "LATTE_NO_CALIBRATION=0"};
    return run_latte(words, how);
  }
  std::string read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  TempFolder folder_;
};

TEST_F(Tune, MeasuresStoresAndPlanAndGenerateFollow) {
  const std::vector<std::string> planned = {"plan", "-m", family_model(), "-t", "1", "--json"};
  EXPECT_FALSE(latte(planned).json().contains("calibrated"));
  const Outcome tuned = latte({"tune", "--crossover", "-m", family_model(), "-t", "1", "--seconds", "0.5", "--json"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  const nlohmann::json report = tuned.json();
  for (const char* field :
       {"model", "geometry", "device", "isa", "processor", "threads", "cache", "weights", "profile_seconds",
        "profile_file", "crossover", "calibrated", "formula_regret", "profile_regret", "cells"})
    EXPECT_TRUE(report.contains(field)) << field;
  EXPECT_EQ(report["cells"].size(), 114u);
  EXPECT_TRUE(std::filesystem::exists(report["profile_file"].get<std::string>()));

  const nlohmann::json plan = latte(planned).json();
  ASSERT_TRUE(plan.contains("calibrated"));
  EXPECT_EQ(plan["calibrated"].size(), plan["crossover"].size());
  EXPECT_EQ(plan["calibrated"][0]["cached"], 512);
  EXPECT_EQ(plan["profile_file"], report["profile_file"]);
  std::vector<std::string> without = planned;
  without.emplace_back("--no-calibration");
  EXPECT_FALSE(latte(without).json().contains("calibrated"));
  without = planned;
  without[4] = "2";
  EXPECT_FALSE(latte(without).json().contains("calibrated")) << "other threads, another profile";

  const Outcome told =
      latte({"generate", "-m", family_model(), "-t", "1", "--ids", "1,2,3,4,5,6,7,8", "-n", "2", "-v"});
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_NE(told.err.find("by this machine's profile"), std::string::npos) << told.err;
}

TEST_F(Tune, PrintsTheTable) {
  const Outcome tuned =
      latte({"tune", "--crossover", "--config", family_model() + "/config.json", "-t", "1", "--seconds", "0.3"});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  for (const char* part : {"3 heads, r 32", "cached rows T   absorbed up to L rows by formula   by profile",
                           "cells measured", "by formula", "by profile", "within 5%"})
    EXPECT_NE(tuned.out.find(part), std::string::npos) << part << "\n" << tuned.out;
}

TEST_F(Tune, UsageIsChecked) {
  EXPECT_EQ(latte({"tune", "-m", family_model()}).exit_code, 2);
  EXPECT_EQ(latte({"tune", "--crossover"}).exit_code, 2);
  EXPECT_EQ(latte({"tune", "--crossover", "-m", family_model(), "--config", "x"}).exit_code, 2);
  EXPECT_EQ(latte({"tune", "--crossover", "-m", family_model(), "--seconds", "-1"}).exit_code, 2);
  const Outcome reference = latte({"tune", "--crossover", "-m", family_model(), "--device", "reference"});
  EXPECT_EQ(reference.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(reference.err)) << reference.err;
  const Outcome coded = latte({"tune", "--crossover", "-m", family_model(), "-ctk", "q8"});
  EXPECT_EQ(coded.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(coded.err)) << coded.err;
}

TEST_F(Tune, ABrokenProfileIsAWarningAndNotUsed) {
  const nlohmann::json report =
      latte({"tune", "--crossover", "-m", family_model(), "-t", "1", "--seconds", "0", "--json"}).json();
  std::ofstream(report["profile_file"].get<std::string>()) << "{\"latte_profile\": 1}";
  const Outcome run = latte({"generate", "-m", family_model(), "-t", "1", "--ids", "1,2,3", "-n", "2", "--json"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_NE(run.err.find("warning: "), std::string::npos);
  EXPECT_NE(run.err.find("the formula chooses"), std::string::npos) << run.err;
  run.json();
}

TEST_F(Tune, PlotDrawsBothRules) {
  const std::string file = folder_.file("crossover.svg");
  const std::vector<std::string> words = {"plan", "-m", family_model(), "-t", "1", "--plot", file};
  ASSERT_EQ(latte(words).exit_code, 0);
  const std::string formula = read(file);
  EXPECT_EQ(formula.find("<svg "), 0u);
  EXPECT_NE(formula.find(">formula</text>"), std::string::npos);
  EXPECT_EQ(formula.find("profile of this machine"), std::string::npos);
  EXPECT_EQ(formula.substr(formula.size() - 7), "</svg>\n");
  ASSERT_EQ(latte({"tune", "--crossover", "-m", family_model(), "-t", "1", "--seconds", "0"}).exit_code, 0);
  ASSERT_EQ(latte(words).exit_code, 0);
  EXPECT_NE(read(file).find("profile of this machine"), std::string::npos);
  const Outcome nowhere = latte({"plan", "-m", family_model(), "--plot", folder_.file("no/folder.svg")});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_TRUE(is_one_error_line(nowhere.err)) << nowhere.err;
}

}  // namespace
}  // namespace latte::test
