#include <gtest/gtest.h>

#include <filesystem>

#include "run_program.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

int entries(const TempFolder& folder) {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(QuantizeCommand, WritesAFolderThatEveryCommandOpens) {
  const TempFolder place;
  const std::string folder = place.file("q4");
  const Outcome written =
      run_latte({"quantize", "-m", family_model(), "-o", folder, "--quantize", "q4", "-t", "1", "--json"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  EXPECT_EQ(written.err, "note: no tokenizer, template or licence was there to be copied\n");
  const nlohmann::json report = written.json();
  EXPECT_EQ(report["quantize"], "q4");
  EXPECT_EQ(report["directory"], folder);
  EXPECT_EQ(report["weight_files"], 1);
  EXPECT_EQ(report["mtp"], true);
  EXPECT_TRUE(report["seconds"].is_number());
  EXPECT_LT(report["bytes"].get<std::int64_t>(), report["bytes_before"].get<std::int64_t>());
  std::int64_t tensors = 0, bytes = 0;
  for (const nlohmann::json& type : report["types"]) {
    tensors += type["tensors"].get<std::int64_t>();
    bytes += type["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(bytes, report["bytes"]);
  const nlohmann::json inspected = run_latte({"inspect", "-m", folder, "--json"}).json();
  EXPECT_EQ(inspected["quantisation"], "q4");
  EXPECT_EQ(inspected["tensors"]["used"], tensors);
  EXPECT_EQ(inspected["weights_bytes"], bytes);
  const std::vector<std::string> run = {"generate", "--ids", "1,2,3,4", "-n", "12", "-t", "1", "--json", "-m"};
  const auto ids_of = [&](std::vector<std::string> more) {
    more.insert(more.begin(), run.begin(), run.end());
    return run_latte(more).json()["ids"];
  };
  EXPECT_EQ(ids_of({folder}), ids_of({family_model(), "--quantize", "q4"}));
  for (const char* command : {"plan", "bench"}) {
    std::vector<std::string> words = {command, "-m", folder};
    if (words[0] == "bench") words.insert(words.end(), {"-p", "2", "-n", "1", "-r", "1", "-t", "1"});
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 0) << command << outcome.err;
  }
}

TEST(QuantizeCommand, TextTellsWhatWasWritten) {
  const TempFolder place;
  const Outcome written =
      run_latte({"quantize", "-m", family_model(), "-o", place.file("q8"), "--quantize", "q4:q8-attn", "--progress"});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  for (const char* part : {"Q4 ", "Q8 ", "F32", "q4:q8-attn of "})
    EXPECT_NE(written.out.find(part), std::string::npos) << written.out;
  EXPECT_NE(written.err.find(" of 1 MB"), std::string::npos) << written.err;
}

TEST(QuantizeCommand, AnInterruptLeavesAllOrNothing) {
  const auto model = test::model_folder("latte-tiny");
  if (!model.has_value()) GTEST_SKIP() << "no latte-tiny";
  const TempFolder place;
  for (const int after_ms : {10, 60, 150, 300}) {
    const std::string folder = place.file("q4");
    const Outcome outcome = run_latte({"quantize", "-m", *model, "-o", folder, "--quantize", "q4"},
                                      {.environment = {}, .close_stdout = false, .interrupt_after_ms = after_ms});
    if (outcome.exit_code == 0) {  // it was faster
      EXPECT_EQ(run_latte({"plan", "-m", folder}).exit_code, 0);
      std::filesystem::remove_all(folder);
    } else {
      // The signal itself where the program had not even begun.
      EXPECT_TRUE(outcome.exit_code == 130 || outcome.exit_code == -SIGINT) << outcome.exit_code << outcome.err;
    }
    EXPECT_EQ(entries(place), 0);
  }
}

TEST(QuantizeCommand, QuantisingAtLoadThatTakesNoTimeIsQuiet) {
  const Outcome outcome = run_latte(
      {"generate", "-m", family_model(), "--ids", "1,2", "-n", "1", "-t", "1", "--quantize", "q4", "--progress"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("loading: weights"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("weights to q4"), std::string::npos) << outcome.err;
}

TEST(QuantizeCommand, WhatIsMissingOrUnknownIsUsage) {
  const TempFolder place;
  const std::vector<std::string> whole = {"quantize", "-m", family_model(), "-o", place.file("x"), "--quantize", "q4"};
  for (std::size_t left_out : {1, 3, 5}) {
    std::vector<std::string> words = whole;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(left_out),
                words.begin() + static_cast<std::ptrdiff_t>(left_out) + 2);
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  }
  for (const char* word : {"none", "q5", "Q4"}) {
    std::vector<std::string> words = whole;
    words.back() = word;
    EXPECT_EQ(run_latte(words).exit_code, 2) << word;
  }
  EXPECT_EQ(entries(place), 0);
}

TEST(QuantizeCommand, FailedWorkIsOneLineAndNothingIsLeft) {
  const TempFolder place;
  place.write("file", "x");
  for (const std::string& where : {place.path(), place.file("file"), place.file("no/such/place")}) {
    const Outcome outcome = run_latte({"quantize", "-m", family_model(), "-o", where, "--quantize", "q8"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(run_latte({"quantize", "-m", "/no/such/model", "-o", place.file("x"), "--quantize", "q8"}).exit_code, 1);
  EXPECT_EQ(entries(place), 1);
}

}  // namespace
}  // namespace latte::test
