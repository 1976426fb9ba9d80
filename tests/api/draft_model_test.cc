// A draft model of another family with the same tokenizer: drafts that the target may take or leave, never another
// text.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "family_engine.h"
#include "support/chat_model.h"
#include "support/chat_replay.h"
#include "support/golden.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

/// Families with rows for the 272 ids of the small tokenizer; some have rows past them, which no id names.
constexpr std::array kFamilies = {"deepseek_v3", "deepseek_v2_lite", "glm4_moe_lite", "youtu", "minicpm3", "llama",
                                  "qwen2",       "qwen3_moe",        "dots1"};

class DraftModel : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test_data_folder().has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
  }
  /// `family` with the small tokenizer, in a folder of its own.
  std::string model(const std::string& family) {
    const std::string folder = folder_.file(family);
    std::filesystem::create_directories(folder);
    write_chat_model(folder, *family_folder(family), "");
    return folder;
  }
  EngineOptions options(const std::string& target, const std::string& draft) {
    EngineOptions options;
    options.model = model(target);
    options.draft_model = model(draft);
    options.threads = 1;
    return options;
  }

  TempFolder folder_;
};

TEST_F(DraftModel, OfAnotherFamilyChangesNoBit) {
  std::int64_t drafted = 0, rejected = 0;
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    const std::string target = kFamilies[i], draft = kFamilies[(i + 1) % kFamilies.size()];
    const Engine engine = open_or_die(options(target, draft));
    for (RunOptions how : {greedy(40), sampled(40, 7)}) {
      how.logprobs = 3;
      Session plain = session_or_die(engine), speculating = session_or_die(engine, SpecType::kDraft, 3);
      const Result<GenerateResult> expected = plain.generate("the others in her story", how);
      const Result<GenerateResult> got = speculating.generate("the others in her story", how);
      ASSERT_TRUE(expected.ok()) << expected.error().message;
      ASSERT_TRUE(got.ok()) << target << " drafted by " << draft << ": " << got.error().message;
      EXPECT_EQ(got->ids, expected->ids) << target << " drafted by " << draft;
      EXPECT_EQ(got->text, expected->text);
      ASSERT_EQ(got->logprobs.size(), expected->logprobs.size());
      for (std::size_t at = 0; at < got->logprobs.size(); ++at)
        EXPECT_EQ(got->logprobs[at].chosen.logprob, expected->logprobs[at].chosen.logprob);
      EXPECT_GT(got->drafted, 0) << target << " drafted by " << draft;
      drafted += got->drafted;
      rejected += got->drafted - got->accepted;
      EXPECT_EQ(speculating.length(), plain.length());
      EXPECT_TRUE(cached_bits(speculating) == cached_bits(plain)) << target << " drafted by " << draft;
    }
  }
  EXPECT_GT(drafted, 0);
  EXPECT_GT(rejected, 0);
}

TEST_F(DraftModel, OfTheSameWeightsIsAcceptedWholeAtEveryTemperature) {
  for (const char* family : {"llama", "qwen3_moe", "glm4_moe_lite"}) {
    const Engine engine = open_or_die(options(family, family));
    for (const RunOptions& how : {greedy(40), sampled(40, 7)}) {
      Session session = session_or_die(engine, SpecType::kDraft, 3);
      const Result<GenerateResult> got = session.generate("one more story", how);
      ASSERT_TRUE(got.ok()) << got.error().message;
      EXPECT_GT(got->drafted, 0);
      EXPECT_EQ(got->accepted, got->drafted) << family;
    }
  }
}

TEST_F(DraftModel, WithAnotherTokenizerIsRefusedByTheFirstIdThatDiffers) {
  EngineOptions both = options("deepseek_v3", "llama");
  nlohmann::json tokenizer;
  std::ifstream(both.draft_model + "/tokenizer.json") >> tokenizer;
  nlohmann::json& vocabulary = tokenizer["model"]["vocab"];
  std::swap(vocabulary["he"], vocabulary["th"]);
  std::ofstream(both.draft_model + "/tokenizer.json") << tokenizer.dump();
  const Result<Engine> refused = Engine::open(both);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("token 261 differs from the target's"), std::string::npos)
      << refused.error().message;
}

TEST_F(DraftModel, WithFewerRowsThanTheTokenizerHasIdsIsRefused) {
  EngineOptions both = options("deepseek_v3", "llama");
  both.draft_model = model("youtu_vl");  // 256 rows
  EXPECT_FALSE(Engine::open(both).ok());
}

}  // namespace
}  // namespace latte::test
