// The trained checkpoint: goldens of an independent implementation, short prompts and a long document past YaRN's
// original length.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "device/open_backend.h"
#include "support/golden.h"
#include "support/teacher_forced.h"
#include "support/test_model.h"
#include "support/tolerance.h"

namespace latte {
namespace {

using test::TeacherForcedLogits;
using test::TeacherForcedRun;

class LatteTiny : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = test::model_folder("latte-tiny");
    if (!folder.has_value())
      GTEST_SKIP() << "latte-tiny is not unpacked (./quickstart does it) and LATTE_TEST_DATA is not set";
    Result<Model> model = load_model(*folder);
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_.emplace(std::move(*model));
    auto prompts = test::read_golden_prompts(std::string(LATTE_SOURCE_DIR) + "/tests/data/latte-tiny/golden.json");
    ASSERT_TRUE(prompts.ok()) << prompts.error().message;
    prompts_ = std::move(*prompts);
    ASSERT_EQ(prompts_.size(), 4U);
  }

  std::unique_ptr<Backend> open(const std::string& device, DType compute = DType::kF32,
                                const std::string& isa = "auto") {
    Result<std::unique_ptr<Backend>> backend =
        open_backend({.device = device, .isa = isa, .threads = 2, .compute = compute});
    EXPECT_TRUE(backend.ok()) << backend.error().message;
    return std::move(*backend);
  }

  TeacherForcedLogits run(Backend& backend, std::span<const TokenId> ids, const TeacherForcedRun& how) {
    auto logits = test::teacher_forced(*model_, backend, ids, how);
    EXPECT_TRUE(logits.ok()) << logits.error().message;
    return std::move(*logits);
  }

  // max|a-b| / max|b| over the golden's five largest logits of every row that was computed. The golden's last MTP slot
  // takes the first continuation token, which is not part of the text.
  static double top5_difference(std::span<const float> logits, int vocab, std::span<const test::GoldenTop> golden) {
    double difference = 0, largest = 0;
    const std::size_t rows = logits.size() / static_cast<std::size_t>(vocab);
    EXPECT_GE(rows + 1, golden.size());
    for (std::size_t row = 0; row < std::min(rows, golden.size()); ++row) {
      for (std::size_t i = 0; i < golden[row].ids.size(); ++i) {
        const double ours =
            logits[row * static_cast<std::size_t>(vocab) + static_cast<std::size_t>(golden[row].ids[i])];
        difference = std::max(difference, std::abs(ours - golden[row].logits[i]));
        largest = std::max(largest, std::abs(golden[row].logits[i]));
      }
    }
    return difference / largest;
  }

  void expect_goldens(Backend& backend, DType cache, double bound) {
    for (const test::GoldenPrompt& prompt : prompts_) {
      const int length = static_cast<int>(prompt.ids.size());
      const std::vector<TeacherForcedRun> runs = {
          {.steps = {length}},
          {.steps = {7, length - 7 - 8, 1, 1, 1, 1, 1, 1, 1, 1}},
          {.steps = {length - 8, 2, 6}},
          {.steps = {length - 8, 3, 5}},
          {.steps = {length - 8, 4, 4}},
          {.steps = {length - 8, 7, 1}},
          {.steps = {length - 8, 8}},
          {.steps = {7, length - 7}, .path = MlaPath::kAbsorbed},
          {.steps = {7, length - 7}, .path = MlaPath::kMaterialised},
          {.steps = {length - 8, 8}, .redo = 3},
      };
      for (TeacherForcedRun how : runs) {
        how.cache_dtype = cache;
        const TeacherForcedLogits logits = run(backend, prompt.ids, how);
        EXPECT_LT(top5_difference(logits.main, model_->config.vocab, prompt.top5), bound) << prompt.text;
        EXPECT_LT(top5_difference(logits.mtp, model_->config.vocab, prompt.mtp_top5), bound) << prompt.text;
      }
    }
  }

  std::optional<Model> model_;
  std::vector<test::GoldenPrompt> prompts_;
};

TEST_F(LatteTiny, ReferenceMatchesTheGoldens) {
  const auto backend = open("reference");
  expect_goldens(*backend, DType::kF64, test::kModelReference);
}

class LatteTinyOn : public LatteTiny, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    if (const auto backend = open_backend({.device = "cpu", .isa = GetParam()}); !backend.ok())
      GTEST_SKIP() << backend.error().message;
    LatteTiny::SetUp();
  }
};

TEST_P(LatteTinyOn, MatchesTheGoldens) {
  const auto backend = open("cpu", DType::kF32, GetParam());
  expect_goldens(*backend, DType::kF32, test::kModelF32);
}

TEST_F(LatteTiny, GreedyContinuationInF32IsTheGoldens) {
  const auto backend = open("cpu");
  for (const test::GoldenPrompt& prompt : prompts_) {
    ModelSequence sequence(*model_, *backend, {.cache_dtype = DType::kF32});
    std::vector<TokenId> ids;
    auto step = sequence.step(prompt.ids, Role::kPrompt, LogitsWanted::kLast);
    for (std::size_t i = 0; i < prompt.greedy.size(); ++i) {
      ASSERT_TRUE(step.ok()) << step.error().message;
      const float* row = step->logits.row(0);
      ids.push_back(static_cast<TokenId>(std::max_element(row, row + step->logits.cols) - row));
      step = sequence.step({&ids.back(), 1}, Role::kGenerated, LogitsWanted::kLast);
    }
    EXPECT_EQ(ids, prompt.greedy) << prompt.text;
  }
}

// In bf16 an id may differ from the golden only where the reference's two best logits are closer than twice the
// measured error.
TEST_P(LatteTinyOn, GreedyChoiceInBf16DiffersOnlyOnNearTies) {
  const auto reference = open("reference");
  const auto cpu = open("cpu", DType::kBf16, GetParam());
  for (const test::GoldenPrompt& prompt : prompts_) {
    std::vector<TokenId> ids = prompt.ids;
    ids.insert(ids.end(), prompt.greedy.begin(), prompt.greedy.end());
    std::vector<int> steps = {static_cast<int>(prompt.ids.size())};
    steps.insert(steps.end(), prompt.greedy.size(), 1);
    const TeacherForcedLogits exact = run(*reference, ids, {.steps = steps, .cache_dtype = DType::kF64});
    const TeacherForcedLogits rounded = run(*cpu, ids, {.steps = steps, .cache_dtype = DType::kBf16});
    double error = 0;
    for (std::size_t i = 0; i < exact.main.size(); ++i)
      error = std::max(error, std::abs(double{exact.main[i]} - rounded.main[i]));
    // A rounded cache chooses another expert now and then, which moves a row of logits up to 26.
    EXPECT_LT(error, 3.0);
    const auto vocab = static_cast<std::size_t>(model_->config.vocab);
    for (std::size_t i = 0; i < prompt.greedy.size(); ++i) {
      const std::size_t row = prompt.ids.size() - 1 + i;
      const auto ours = std::span(rounded.main).subspan(row * vocab, vocab);
      const auto id = std::max_element(ours.begin(), ours.end()) - ours.begin();
      if (id == prompt.greedy[i]) continue;
      std::vector<float> sorted(exact.main.begin() + static_cast<std::ptrdiff_t>(row * vocab),
                                exact.main.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocab));
      std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
      EXPECT_LT(sorted[0] - sorted[1], 2 * error) << prompt.text << " token " << i;
    }
  }
}

TEST_F(LatteTiny, LongDocumentMatchesTheGolden) {
  const auto data = test::test_data_folder();
  if (!data.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set: golden_long.safetensors is read from there";
  const std::string golden = *data + "/models/latte-tiny/golden_long.safetensors";
  const auto ids = test::read_golden_ids(golden, "ids");
  const auto positions = test::read_golden_ids(golden, "positions");
  const auto main = test::read_golden_matrix(golden, "logits");
  const auto mtp = test::read_golden_matrix(golden, "mtp_logits");
  ASSERT_TRUE(ids.ok() && positions.ok() && main.ok() && mtp.ok());
  ASSERT_EQ(ids->size(), 6000U);
  const auto backend = open("cpu");
  std::vector<int> steps(11, 512);
  steps.push_back(6000 - 11 * 512);
  const TeacherForcedLogits logits = run(*backend, *ids, {.steps = steps, .cache_dtype = DType::kF32});
  const auto vocab = static_cast<std::size_t>(model_->config.vocab);
  std::vector<float> ours_main, ours_mtp, golden_main, golden_mtp;
  for (std::size_t i = 0; i < positions->size(); ++i) {
    const auto position = static_cast<std::size_t>((*positions)[i]);
    const auto append = [&](std::vector<float>& to, std::span<const float> row) {
      to.insert(to.end(), row.begin(), row.end());
    };
    append(ours_main, std::span(logits.main).subspan(position * vocab, vocab));
    append(golden_main, main->row(static_cast<std::int64_t>(i)));
    if ((position + 1) * vocab > logits.mtp.size()) continue;
    append(ours_mtp, std::span(logits.mtp).subspan(position * vocab, vocab));
    append(golden_mtp, mtp->row(static_cast<std::int64_t>(i)));
  }
  EXPECT_LT(test::max_relative_difference(ours_main, golden_main), test::kModelF32);
  EXPECT_LT(test::max_relative_difference(ours_mtp, golden_mtp), test::kModelF32);
  EXPECT_GE(ours_mtp.size() / vocab, 60U);
}

TEST_F(LatteTiny, IsReadyInAFifthOfASecond) {
  const auto folder = test::model_folder("latte-tiny");
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Result<Model> model = load_model(*folder);
    ASSERT_TRUE(model.ok());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  EXPECT_LT(best, 0.2);
}

INSTANTIATE_TEST_SUITE_P(Isas, LatteTinyOn, ::testing::Values("scalar", "avx2", "avx512", "avx512_bf16", "amx"),
                         [](const auto& isa) { return isa.param; });

}  // namespace
}  // namespace latte
