#include "latte/eval.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "family_engine.h"
#include "support/chat_model.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

class EvalTest : public ::testing::Test {
 protected:
  void SetUp() override { write_chat_model(folder_.path(), family_folder(), ""); }

  Engine engine(int context) const {
    EngineOptions options;
    options.model = folder_.path();
    options.threads = 1;
    options.context = context;
    return open_or_die(options);
  }

  static EvalReport report_of(const Engine& engine, std::string_view text) {
    const Result<EvalReport> report = evaluate_text(engine, text);
    if (!report.ok()) ADD_FAILURE() << report.error().message;
    return report.ok() ? *report : EvalReport{};
  }

  TempFolder folder_;
};

TEST_F(EvalTest, SumsTheTeacherForcedLogits) {
  const Engine opened = engine(64);
  const std::string text = "a few words, no more";
  std::vector<std::int32_t> ids = *opened.text()->encode(text, {.add_bos = true});
  Session session = session_or_die(opened);
  double expected = 0;
  LogitsOptions options;
  options.role = StepRole::kPrompt;
  const auto take = [&](int first, std::span<const float> logits) -> Status {
    const std::size_t vocab = 272;
    for (std::size_t row = 0; row < logits.size() / vocab; ++row) {
      double sum = 0;
      for (const float logit : logits.subspan(row * vocab, vocab)) sum += std::exp(static_cast<double>(logit));
      const std::size_t next = static_cast<std::size_t>(first) + row + 1;
      if (next < ids.size()) expected += std::log(sum) - logits[row * vocab + static_cast<std::size_t>(ids[next])];
    }
    return {};
  };
  ASSERT_TRUE(session.logits(ids, options, take).ok());
  const EvalReport report = report_of(opened, text);
  EXPECT_EQ(report.total.tokens, static_cast<std::int64_t>(ids.size()) - 1);
  EXPECT_EQ(report.total.bytes, static_cast<std::int64_t>(text.size()));
  EXPECT_NEAR(report.total.nll, expected, 1e-4 * expected);
  EXPECT_NEAR(report.total.bits_per_byte(), expected / std::log(2.0) / static_cast<double>(text.size()), 1e-3);
  EXPECT_NEAR(std::log(report.total.perplexity()), report.total.nll / static_cast<double>(report.total.tokens), 1e-9);
}

TEST_F(EvalTest, LongDocumentsAreCutIntoWindowsOfTheContext) {
  const Engine opened = engine(16);
  const std::string text = std::string(40, 'q') + std::string(1, '\0') + "xyz";
  const EvalReport report = report_of(opened, text);
  EXPECT_EQ(report.documents, 2);
  ASSERT_EQ(report.windows.size(), 4u);
  EXPECT_EQ(report.windows[1].first, 16);
  EXPECT_EQ(report.windows[2].score.tokens, 8);
  EXPECT_EQ(report.windows[3].document, 1);
  EXPECT_EQ(report.total.tokens, 43) << "every window begins with BOS, so that every token is foretold";
  EXPECT_EQ(report.total.bytes, 43);
  double nll = 0;
  for (const EvalWindow& window : report.windows) nll += window.score.nll;
  EXPECT_NEAR(nll, report.total.nll, 1e-9 * nll);
  EXPECT_DOUBLE_EQ(report.windows[0].score.nll, report_of(opened, std::string(16, 'q')).total.nll)
      << "a window is read from nothing";
}

TEST_F(EvalTest, NothingToForetellIsAnErrorAndTheCallerMayStop) {
  const Engine opened = engine(16);
  EXPECT_FALSE(evaluate_text(opened, "").ok());
  EXPECT_FALSE(evaluate_text(opened, std::string(3, '\0')).ok());
  const Result<EvalReport> stopped = evaluate_text(opened, "abc", [](int, int) { return false; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
}

// The training code's own figures for the first 1024 tokens of each held-out document of prose.
TEST(Eval, HeldOutProseScoresAsInTraining) {
  const char* data = std::getenv("LATTE_TEST_DATA");
  const std::optional<std::string> tiny = model_folder("latte-tiny");
  if (data == nullptr || !tiny.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
  std::ifstream file(std::string(data) + "/data/heldout/heldout_prose.txt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::ifstream figures(std::string(data) + "/models/latte-tiny/eval.json");
  const nlohmann::json expected = nlohmann::json::parse(figures)["text"]["prose"]["0-1K"];
  EngineOptions options;
  options.model = *tiny;
  options.context = 1024;
  const Engine engine = open_or_die(options);
  std::string firsts;  // enough bytes of each document for its first 1024 tokens
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\0', begin), text.size());
    firsts += text.substr(begin, std::min<std::size_t>(end - begin, 4600)) + std::string(1, '\0');
    begin = end + 1;
  }
  const Result<EvalReport> report = evaluate_text(engine, firsts);
  ASSERT_TRUE(report.ok()) << report.error().message;
  TextScore score;
  for (const EvalWindow& window : report->windows) {
    if (window.first != 0) continue;
    EXPECT_EQ(window.score.tokens, 1024);
    score.tokens += window.score.tokens;
    score.bytes += window.score.bytes;
    score.nll += window.score.nll;
  }
  EXPECT_EQ(score.tokens, expected["tokens"].get<std::int64_t>());
  EXPECT_NEAR(score.nll_per_token(), expected["loss"].get<double>(), 0.003);
  EXPECT_NEAR(score.bits_per_byte(), expected["bits_per_byte"].get<double>(), 0.002);
}

}  // namespace
}  // namespace latte::test
