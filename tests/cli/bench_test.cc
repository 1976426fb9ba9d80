#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "run_program.h"

namespace latte::test {
namespace {

std::vector<std::string> bench(std::vector<std::string> more) {
  std::vector<std::string> words = {"bench", "-m", family_model(), "-t",   "1",  "-p", "20", "-n", "3",
                                    "-nv",   "2",  "-d",           "0,24", "-r", "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The cells of a line of a Markdown table.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (std::size_t at = 1; at < line.size();) {
    const std::size_t end = line.find('|', at);
    if (end == std::string::npos) break;
    const std::string cell = line.substr(at, end - at);
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    at = end + 1;
  }
  return cells;
}

bool is_one_line_of(const std::string& text, const std::string& start) {
  return text.starts_with(start) && text.find('\n') == text.size() - 1;
}

TEST(BenchCommand, PrintsTheTableEverybodyPastes) {
  double load = 0;
  ASSERT_EQ(getloadavg(&load, 1), 1);
  const Outcome outcome = run_latte(bench({}));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  // One thread: others are at work where the load is above 1.
  const std::string busy =
      is_one_line_of(outcome.err, "warning: the machine is busy, load average ") ? outcome.err : "";
  EXPECT_EQ(outcome.err, busy);
  if (load < 0.9) {
    EXPECT_EQ(busy, "");
  }
  if (load > 1.2) {
    EXPECT_NE(busy.find("over 1 threads: the times below are too long"), std::string::npos) << load;
  }
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_GE(lines.size(), 8u);
  EXPECT_EQ(lines[0], "| model | size | params | backend | threads | test | t/s | paths | GB/s | roof |");
  const char* tests[] = {"pp20", "tg3", "v2", "pp20 @ d24", "tg3 @ d24", "v2 @ d24"};
  for (std::size_t i = 0; i < 6; ++i) {
    const std::vector<std::string> cells = cells_of(lines[2 + i]);
    ASSERT_EQ(cells.size(), 10u) << lines[2 + i];
    EXPECT_EQ(cells[0], "deepseek_v3 f32");
    EXPECT_TRUE(cells[1].ends_with(" MiB")) << cells[1];
    EXPECT_TRUE(cells[2].ends_with(" M")) << cells[2];
    EXPECT_EQ(cells[3].substr(0, 5), "cpu (");
    EXPECT_EQ(cells[4], "1");
    EXPECT_EQ(cells[5], tests[i]);
    EXPECT_NE(cells[6].find(" ± "), std::string::npos) << cells[6];
    EXPECT_TRUE(cells[7].starts_with("absorbed ") || cells[7].starts_with("materialised ")) << cells[7];
    EXPECT_TRUE(cells[9].ends_with("%")) << cells[9];
  }
  EXPECT_NE(outcome.out.find("second row of a verify step at depth 24: "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("memory read at "), std::string::npos);
}

TEST(BenchCommand, JsonHoldsTheFieldsOfTheContract) {
  for (const std::vector<std::string>& how : {std::vector<std::string>{"-o", "json"}, {"--json"}}) {
    const nlohmann::json rows = run_latte(bench(how)).json();
    ASSERT_EQ(rows.size(), 6u);
    for (const nlohmann::json& row : rows) {
      for (const char* field : {"test", "arm"}) EXPECT_TRUE(row.at(field).is_string()) << field;
      for (const char* field : {"rows", "depth", "samples", "bytes_moved", "threads", "size", "params"})
        EXPECT_TRUE(row.at(field).is_number_integer()) << field;
      for (const char* field :
           {"median_seconds", "min_seconds", "gbytes_per_second", "roof_share", "tokens_per_second"})
        EXPECT_GT(row.at(field).get<double>(), 0) << field;
      EXPECT_TRUE(row.at("paths").at("absorbed").is_number_integer());
    }
    EXPECT_EQ(rows[4].at("test"), "tg3 @ d24");
    EXPECT_EQ(rows[4].at("paths").at("absorbed"), 6);
    EXPECT_EQ(rows[4].at("paths").at("materialised"), 0);
    EXPECT_TRUE(rows[5].at("second_row_cost").is_number());
    EXPECT_TRUE(rows[4].at("second_row_cost").is_null());
  }
}

TEST(BenchCommand, LinesOfJsonAreObjects) {
  const std::vector<std::string> lines = lines_of(run_latte(bench({"-o", "jsonl"})).out);
  ASSERT_EQ(lines.size(), 6u);
  for (const std::string& line : lines) EXPECT_TRUE(nlohmann::json::parse(line).contains("roof_share")) << line;
}

TEST(BenchCommand, RowsNameTheTypeOfTheCache) {
  EXPECT_NE(run_latte(bench({"-ctk", "q8"})).out.find(", rows q8 |"), std::string::npos);
  EXPECT_NE(run_latte(bench({"-ctk", "q8", "-o", "jsonl"})).out.find(R"("cache_type":"q8")"), std::string::npos);
}

std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (const char c : line) {
    if (c == '"') {
      inside = !inside;
    } else if (c == ',' && !inside) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

TEST(BenchCommand, CsvHasAHeadAndALineARow) {
  const std::vector<std::string> lines = lines_of(run_latte(bench({"-o", "csv"})).out);
  ASSERT_EQ(lines.size(), 7u);
  const std::vector<std::string> names = csv_fields(lines[0]);
  for (const char* name : {"test", "rows", "depth", "arm", "median_seconds", "min_seconds", "samples", "paths_absorbed",
                           "bytes_moved", "gbytes_per_second", "roof_share"})
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_EQ(csv_fields(lines[i]).size(), names.size()) << lines[i];
}

TEST(BenchCommand, SqlMakesATableAndFillsIt) {
  const std::string text = run_latte(bench({"-o", "sql"})).out;
  EXPECT_TRUE(text.starts_with("CREATE TABLE IF NOT EXISTS latte_bench (\n")) << text;
  EXPECT_NE(text.find("  test TEXT"), std::string::npos);
  EXPECT_NE(text.find("  median_seconds REAL"), std::string::npos);
  EXPECT_NE(text.find("  second_row_cost REAL"), std::string::npos);
  std::size_t inserts = 0;
  for (const std::string& line : lines_of(text)) {
    if (!line.starts_with("INSERT INTO latte_bench VALUES (")) continue;
    ++inserts;
    EXPECT_TRUE(line.ends_with(");")) << line;
  }
  EXPECT_EQ(inserts, 6u);
}

TEST(BenchCommand, SvgIsADrawingWithABarARow) {
  const std::string text = run_latte(bench({"-o", "svg"})).out;
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << text;
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  std::size_t bars = 0;
  for (const std::string& line : lines_of(text)) bars += line.find("fill=\"#4878a8\"") != std::string::npos ? 1 : 0;
  EXPECT_EQ(bars, 6u);
}

TEST(BenchCommand, RandomWeightsSayWhatTheyAre) {
  const Outcome outcome = run_latte({"bench", "--config", family_model() + "/config.json", "--random-weights",
                                     "--layers", "1", "-p", "8", "-n", "2", "-d", "16", "-r", "1", "-t", "1"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("(1 of "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(", random"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("cache: synthetic"), std::string::npos) << outcome.out;
}

TEST(BenchCommand, RandomWeightsAreMadeInEveryFormat) {
  for (const char* format : {"q8", "q4", "q4:q8-attn"}) {
    const Outcome outcome = run_latte({"bench", "--config", family_model() + "/config.json", "--random-weights",
                                       "--quantize", format, "-p", "8", "-n", "2", "-nv", "2", "-r", "1", "-t", "1"});
    ASSERT_EQ(outcome.exit_code, 0) << format << ": " << outcome.err;
    EXPECT_NE(outcome.out.find(std::string("random ") + format), std::string::npos) << outcome.out;
  }
}

TEST(BenchCommand, AttentionComparesThreeArms) {
  const std::vector<std::string> words = {"bench", "--attention", "-m", family_model(), "-nv", "1,8", "-d",
                                          "64",    "-r",          "2",  "-t",           "1"};
  const Outcome outcome = run_latte(words);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* part : {"| expanded |", "| materialised |", "| absorbed |", "attn8 @ d64", "bytes a token",
                           "| floor ms | share |", "over registers)"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  std::vector<std::string> json = words;
  json.push_back("--json");
  std::set<std::string> arms;
  for (const nlohmann::json& row : run_latte(json).json()) arms.insert(row.at("arm").get<std::string>());
  EXPECT_EQ(arms, std::set<std::string>({"absorbed", "expanded", "materialised"}));
}

TEST(BenchCommand, MisuseIsOneLine) {
  const std::string config = family_model() + "/config.json";
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bench"},
                                                {"bench", "-m", family_model(), "--config", config},
                                                {"bench", "--config", config},
                                                {"bench", "-m", family_model(), "--random-weights"},
                                                {"bench", "-m", family_model(), "--layers", "1"},
                                                {"bench", "-m", family_model(), "-p", "1-"},
                                                {"bench", "-m", family_model(), "-n", "4-1"},
                                                {"bench", "-m", family_model(), "-d", "x"},
                                                {"bench", "-m", family_model(), "-nv", "1-8*1"},
                                                {"bench", "-m", family_model(), "-nv", "17"},
                                                {"bench", "-m", family_model(), "-r", "0"},
                                                {"bench", "-m", family_model(), "-o", "pdf"},
                                                {"bench", "-m", family_model(), "-o", "csv", "--json"},
                                                {"bench", "-m", family_model(), "--spec"},
                                                {"bench", "-m", family_model(), "--spec-type", "mtp"},
                                                {"bench", "-m", family_model(), "--attention", "-p", "5"}}) {
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 2) << words.back();
    EXPECT_EQ(outcome.out, "") << words.back();
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  }
}

TEST(BenchCommand, FailureIsOneLineAndOne) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bench", "-m", "/no/such/folder"},

                                                {"bench", "-m", family_model(), "-f", "/no/such/file"},
                                                {"bench", "-m", family_model(), "--device", "cuda"},
                                                {"bench", "-m", family_model(), "-ctk", "fp8"},
                                                {"bench", "-m", family_model(), "-p", "0", "-n", "0"}}) {
    const Outcome outcome = run_latte(words);
    EXPECT_EQ(outcome.exit_code, 1) << words.back();
    EXPECT_EQ(outcome.out, "") << words.back();
    EXPECT_TRUE(is_one_error_line(outcome.err)) << outcome.err;
  }
}

}  // namespace
}  // namespace latte::test
