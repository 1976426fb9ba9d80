// The fault of other engines: a quantised cache that is right on turn 1 and wrong on turn 2. A second turn on rows that
// a prompt, generated tokens and rejected drafts left in the cache is compared with a fresh prefill of the whole text.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "model/sequence.h"
#include "support/golden.h"
#include "support/test_model.h"
#include "support/tolerance.h"

namespace latte {
namespace {

constexpr std::size_t kFirstTurn = 190, kSecondTurn = 70;
constexpr int kReply = 50;

struct SecondTurn {
  DType cache;
  MlaPath path;
  double bound;  ///< of the logits, in the measure of tolerance.h
};

/// Of one form throughout, the rows of the second turn have the bits of a fresh prefill.
constexpr double kSameForm = 1e-6;
/// Generated rows are absorbed and a fresh prompt's are materialised: near the middle between two codes a column may
/// take the other one, which moves logits about as much as the codes themselves do.
constexpr double kOtherCodes = 1e-2;
constexpr double kRounding = 3e-3;

class SecondTurnTest : public ::testing::TestWithParam<SecondTurn> {
 protected:
  void SetUp() override {
    const auto folder = test::model_folder("latte-tiny");
    if (!folder.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked (./quickstart does it)";
    // In f32: where products of many rows are multiplied in bf16 of their own (AMX), decoded rows differ by roundings.
    auto backend = open_backend({.device = "cpu", .threads = 2, .compute = DType::kF32});
    ASSERT_TRUE(backend.ok());
    backend_ = std::move(*backend);
    auto model = load_model(*folder);
    ASSERT_TRUE(model.ok());
    model_.emplace(std::move(*model));
    const auto prompts =
        test::read_golden_prompts(std::string(LATTE_SOURCE_DIR) + "/tests/data/latte-tiny/golden.json");
    ASSERT_TRUE(prompts.ok());
    for (const auto& prompt : *prompts) {
      ids_.insert(ids_.end(), prompt.ids.begin(), prompt.ids.end());
      ids_.insert(ids_.end(), prompt.greedy.begin(), prompt.greedy.end());
    }
    ASSERT_GE(ids_.size(), kFirstTurn + kSecondTurn);
  }

  SequenceOptions options() const { return {.cache_dtype = GetParam().cache, .path = GetParam().path}; }

  static std::vector<float> last_logits(const Result<StepResult>& step) {
    EXPECT_TRUE(step.ok()) << step.error().message;
    return {step->logits.row(0), step->logits.row(0) + step->logits.cols};
  }

  std::unique_ptr<Backend> backend_;
  std::optional<Model> model_;
  std::vector<TokenId> ids_;
};

TEST_P(SecondTurnTest, IsThatOfAFreshPrefill) {
  std::vector<TokenId> text(ids_.begin(), ids_.begin() + kFirstTurn);
  ModelSequence warm(*model_, *backend_, options());
  MtpSequence mtp(*model_, *backend_, options(), warm.scratch());
  MtpDrafter drafter(mtp);
  const Sampler sampler({}, model_->config.vocab);
  const auto reply = generate({.target = warm,
                               .drafter = &drafter,
                               .sampler = sampler,
                               .tokens = text,
                               .options = {.max_tokens = kReply, .depth = 3}});
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  ASSERT_LT(reply->stats.accepted, reply->stats.drafted) << "drafts were rejected: rows were written twice";
  text.insert(text.end(), ids_.begin() + kFirstTurn, ids_.begin() + kFirstTurn + kSecondTurn);
  const auto cached = static_cast<std::size_t>(warm.length());
  const std::vector<float> second =
      last_logits(warm.step(std::span(text).subspan(cached), Role::kPrompt, LogitsWanted::kLast));

  ModelSequence fresh(*model_, *backend_, options());
  const std::vector<float> expected = last_logits(fresh.step(text, Role::kPrompt, LogitsWanted::kLast));
  const double difference = test::max_relative_difference(second, expected);
  RecordProperty("difference", std::to_string(difference));
  EXPECT_LE(difference, GetParam().bound);
  EXPECT_EQ(std::max_element(second.begin(), second.end()) - second.begin(),
            std::max_element(expected.begin(), expected.end()) - expected.begin());
}

/// The same text on rows of F32: what the type itself costs.
TEST_P(SecondTurnTest, IsNearThatOfFullRows) {
  const std::span<const TokenId> text(ids_.data(), kFirstTurn + kSecondTurn);
  ModelSequence coded(*model_, *backend_, options());
  ModelSequence full(*model_, *backend_, {.cache_dtype = DType::kF32, .path = GetParam().path});
  const double difference =
      test::max_relative_difference(last_logits(coded.step(text, Role::kPrompt, LogitsWanted::kLast)),
                                    last_logits(full.step(text, Role::kPrompt, LogitsWanted::kLast)));
  RecordProperty("difference", std::to_string(difference));
  EXPECT_LE(difference, 2e-2);
  EXPECT_GT(difference, 0) << "rows were stored as they were asked for";
}

INSTANTIATE_TEST_SUITE_P(Types, SecondTurnTest,
                         ::testing::Values(SecondTurn{DType::kQ8, MlaPath::kAuto, kOtherCodes},
                                           SecondTurn{DType::kQ8, MlaPath::kAbsorbed, kSameForm},
                                           SecondTurn{DType::kQ8, MlaPath::kMaterialised, kSameForm},
                                           SecondTurn{DType::kF16, MlaPath::kAuto, kRounding},
                                           SecondTurn{DType::kBf16, MlaPath::kAuto, kRounding}),
                         [](const ::testing::TestParamInfo<SecondTurn>& one) {
                           const char* form = one.param.path == MlaPath::kAbsorbed       ? "absorbed"
                                              : one.param.path == MlaPath::kMaterialised ? "materialised"
                                                                                         : "auto";
                           return std::string(dtype_name(one.param.cache)) + "_" + form;
                         });

}  // namespace
}  // namespace latte
