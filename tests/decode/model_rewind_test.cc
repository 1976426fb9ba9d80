// Rewinding is exact on the trained checkpoint: after rejected drafts every cached byte is what plain decoding would
// have written.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "model/sequence.h"
#include "support/golden.h"
#include "support/test_model.h"

namespace latte {
namespace {

class ModelRewind : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const auto folder = test::model_folder("latte-tiny");
    if (!folder.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked (./quickstart does it)";
    auto backend = open_backend(
        {.device = "cpu", .threads = 2, .compute = GetParam() == DType::kF32 ? DType::kF32 : DType::kBf16});
    ASSERT_TRUE(backend.ok());
    backend_ = std::move(*backend);
    auto model = load_model(*folder);
    ASSERT_TRUE(model.ok());
    model_.emplace(std::move(*model));
    const auto prompts =
        test::read_golden_prompts(std::string(LATTE_SOURCE_DIR) + "/tests/data/latte-tiny/golden.json");
    ASSERT_TRUE(prompts.ok());
    prompt_ = prompts->front().ids;
    text_ = prompts->front().greedy;
  }

  SequenceOptions options() const { return {.cache_dtype = GetParam()}; }

  std::unique_ptr<Backend> backend_;
  std::optional<Model> model_;
  std::vector<TokenId> prompt_, text_;
};

TEST_P(ModelRewind, RejectingEverythingForFiftyRoundsLeavesNoTrace) {
  ModelSequence plain(*model_, *backend_, options());
  ModelSequence drafting(*model_, *backend_, options());
  ASSERT_TRUE(plain.step(prompt_, Role::kPrompt, LogitsWanted::kLast).ok());
  ASSERT_TRUE(drafting.step(prompt_, Role::kPrompt, LogitsWanted::kLast).ok());
  for (int round = 0; round < 50; ++round) {
    const auto at = static_cast<std::size_t>(round);
    const auto wanted = plain.step(std::span(text_).subspan(at, 1), Role::kGenerated, LogitsWanted::kLast);
    ASSERT_TRUE(wanted.ok());
    std::vector<TokenId> block = {text_[at]};
    for (int i = 0; i < 1 + round % 15; ++i) block.push_back((17 * round + 31 * i) % model_->config.vocab);
    const int before = drafting.length();
    const auto seen = drafting.step(block, Role::kGenerated, LogitsWanted::kAll);
    ASSERT_TRUE(seen.ok());
    EXPECT_EQ(std::memcmp(seen->logits.row(0), wanted->logits.row(0),
                          sizeof(float) * static_cast<std::size_t>(seen->logits.cols)),
              0)
        << "round " << round;
    ASSERT_TRUE(drafting.rewind_to(before + 1).ok());
    EXPECT_EQ(drafting.length(), plain.length());
  }
  const LatentSnapshot a = plain.cache().snapshot(), b = drafting.cache().snapshot();
  EXPECT_EQ(a.length, b.length);
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST_P(ModelRewind, MtpRowsEqualThoseWrittenOneAtATime) {
  // Speculative runs write MTP rows in steps of one to five, chained rows in between are dropped.
  const auto speculate = [&](int depth, std::vector<TokenId>& tokens) {
    ModelSequence target(*model_, *backend_, options());
    MtpSequence mtp(*model_, *backend_, options(), target.scratch());
    MtpDrafter drafter(mtp);
    const Sampler sampler({}, model_->config.vocab);
    const auto done = generate({.target = target,
                                .drafter = &drafter,
                                .sampler = sampler,
                                .tokens = tokens,
                                .options = {.max_tokens = 60, .depth = depth}});
    EXPECT_TRUE(done.ok() && done->stats.accepted > 0 && done->stats.accepted < done->stats.drafted);
    EXPECT_LE(mtp.length(), target.length());
    EXPECT_GE(mtp.length(), target.length() - 2 - depth);  // the last round may have had no room to draft
    return mtp.cache().snapshot();
  };
  std::vector<TokenId> tokens = prompt_, again = prompt_;
  const LatentSnapshot deep = speculate(4, tokens);
  const LatentSnapshot shallow = speculate(1, again);
  ASSERT_EQ(tokens, again);

  ModelSequence target(*model_, *backend_, options());
  MtpSequence mtp(*model_, *backend_, options(), target.scratch());
  MtpDrafter drafter(mtp);
  const auto prompt = target.step(prompt_, Role::kPrompt, LogitsWanted::kLast);
  ASSERT_TRUE(prompt.ok());
  ASSERT_TRUE(drafter.observe({.tokens = tokens, .first_row = 0, .hidden = prompt->hidden}).ok());
  for (ConstMatRef waiting = mtp.kept(); mtp.length() < static_cast<int>(prompt_.size());) {
    const auto row = waiting.rows - (static_cast<int>(prompt_.size()) - mtp.length());
    ASSERT_TRUE(mtp.step(std::span(tokens).subspan(static_cast<std::size_t>(mtp.length()) + 1, 1),
                         waiting.rows_from(row, 1), Role::kGenerated, LogitsWanted::kNone)
                    .ok());
  }
  for (auto at = prompt_.size(); at + 1 < tokens.size(); ++at) {
    const auto step = target.step(std::span(tokens).subspan(at, 1), Role::kGenerated, LogitsWanted::kNone);
    ASSERT_TRUE(step.ok());
    ASSERT_TRUE(
        mtp.step(std::span(tokens).subspan(at + 1, 1), step->hidden, Role::kGenerated, LogitsWanted::kNone).ok());
  }
  const LatentSnapshot one = mtp.cache().snapshot();
  const std::size_t row_bytes = one.bytes.size() / static_cast<std::size_t>(one.length);
  for (const LatentSnapshot* other : {&deep, &shallow}) {
    ASSERT_LE(other->length, one.length);
    ASSERT_GE(other->length, static_cast<int>(prompt_.size()) + 40);
    EXPECT_EQ(std::memcmp(one.bytes.data(), other->bytes.data(), row_bytes * static_cast<std::size_t>(other->length)),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ModelRewind, ::testing::Values(DType::kF32, DType::kBf16, DType::kF16, DType::kQ8),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

}  // namespace
}  // namespace latte
