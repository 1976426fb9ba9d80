// Speculation changes nothing: ids and logits' bits of every drafter, depth, thread count and cutting are those of
// plain decoding, on the trained checkpoint. A drafted run counts only when it drafted, rejected and fully accepted.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <set>

#include "decode/decode_rig.h"
#include "decode/draft_model_drafter.h"
#include "decode/lookup_drafter.h"
#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "model/sequence.h"
#include "plan/split_kv.h"
#include "support/golden.h"
#include "support/test_model.h"

namespace latte {
namespace {

using test::DrafterKind;

constexpr int kTokens = 96;
// Prompt rows that each arm reads itself, so that the MTP layer has hidden rows to start from.
constexpr int kReadByEachArm = 256;

std::uint64_t hash_bits(const float* row, std::int64_t count) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::int64_t i = 0; i < count; ++i) hash = (hash ^ std::bit_cast<std::uint32_t>(row[i])) * 0x100000001b3u;
  return hash;
}

// Passes everything on and remembers the bits of the logits that each position was last given.
class RecordingTimeline final : public Timeline {
 public:
  explicit RecordingTimeline(ModelSequence& inner) : inner_(inner) {}
  int length() const override { return inner_.length(); }
  int context() const override { return inner_.context(); }
  int vocab() const override { return inner_.vocab(); }
  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override {
    const int first = inner_.length();
    Result<StepResult> result = inner_.step(ids, role, wanted);
    if (!result.ok()) return result;
    const int skipped = static_cast<int>(ids.size()) - static_cast<int>(result->logits.rows);
    for (int i = 0; i < result->logits.rows; ++i)
      bits_[first + skipped + i] = hash_bits(result->logits.row(i), result->logits.cols);
    return result;
  }
  bool can_rewind_to(int length) const override { return inner_.can_rewind_to(length); }
  Status rewind_to(int length) override {
    bits_.erase(bits_.lower_bound(length), bits_.end());
    return inner_.rewind_to(length);
  }
  const std::map<int, std::uint64_t>& bits() const { return bits_; }

 private:
  ModelSequence& inner_;
  std::map<int, std::uint64_t> bits_;
};

struct Arm {
  DrafterKind drafts = DrafterKind::kNone;
  int depth = 0;
  int threads = 1;
};

struct RecordedRun {
  std::vector<TokenId> tokens;
  std::map<int, std::uint64_t> bits;
  DecodeStats stats;
};

bool counts(const RecordedRun& outcome, int depth) {
  const auto& tested = outcome.stats.tested_per_position;
  const auto& accepted = outcome.stats.accepted_per_position;
  bool rejected = false;
  for (std::size_t i = 0; i < tested.size(); ++i) rejected = rejected || accepted[i] < tested[i];
  return outcome.stats.drafted > 0 && rejected && accepted[static_cast<std::size_t>(depth - 1)] > 0;
}

class BitEquality : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto target = test::model_folder("latte-tiny");
    const auto draft = test::model_folder("latte-tiny-draft");
    if (!target.has_value() || !draft.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked (./quickstart does it)";
    for (const int threads : {1, 2}) {
      auto backend = open_backend({.device = "cpu", .isa = GetParam(), .threads = threads, .compute = DType::kBf16});
      if (!backend.ok()) GTEST_SKIP() << backend.error().message;
      backends_.push_back(std::move(*backend));
    }
    auto model = load_model(*target);
    auto small = load_model(*draft);
    ASSERT_TRUE(model.ok() && small.ok());
    model_.emplace(std::move(*model));
    draft_.emplace(std::move(*small));
    const auto prompts =
        test::read_golden_prompts(std::string(LATTE_SOURCE_DIR) + "/tests/data/latte-tiny/golden.json");
    ASSERT_TRUE(prompts.ok());
    for (const auto& prompt : *prompts) {
      short_ids_.insert(short_ids_.end(), prompt.ids.begin(), prompt.ids.end());
      short_ids_.insert(short_ids_.end(), prompt.greedy.begin(), prompt.greedy.end());
    }
  }

  // The prompt's first rows, computed once and shared by every arm.
  LatentSnapshot prefill(std::span<const TokenId> prompt) {
    ModelSequence sequence(*model_, *backends_[1], {.cache_dtype = cache_dtype_});
    std::size_t at = 0;
    while (prompt.size() - at > kReadByEachArm) {
      const std::size_t rows = std::min<std::size_t>(512, prompt.size() - at - kReadByEachArm);
      const auto step = sequence.step(prompt.subspan(at, rows), Role::kPrompt, LogitsWanted::kNone);
      EXPECT_TRUE(step.ok());
      at += rows;
    }
    return sequence.cache().snapshot();
  }

  RecordedRun run(std::span<const TokenId> prompt, const LatentSnapshot& start, const SamplingOptions& sampling,
                  const Arm& arm) {
    Backend& backend = *backends_[static_cast<std::size_t>(arm.threads - 1)];
    const SequenceOptions options{.cache_dtype = cache_dtype_};
    ModelSequence sequence(*model_, backend, options);
    EXPECT_TRUE(sequence.cache().restore(start).ok());
    RecordingTimeline target(sequence);
    MtpSequence mtp(*model_, backend, options, sequence.scratch());
    ModelSequence small(*draft_, backend, options);
    std::unique_ptr<Drafter> drafter;
    if (arm.drafts == DrafterKind::kMtp) drafter = std::make_unique<MtpDrafter>(mtp);
    if (arm.drafts == DrafterKind::kDraftModel) drafter = std::make_unique<DraftModelDrafter>(small);
    if (arm.drafts == DrafterKind::kLookup) drafter = std::make_unique<LookupDrafter>();
    RecordedRun outcome{.tokens = {prompt.begin(), prompt.end()}, .bits = {}, .stats = {}};
    const Sampler sampler(sampling, model_->config.vocab);
    const auto done = generate({.target = target,
                                .drafter = drafter.get(),
                                .sampler = sampler,
                                .tokens = outcome.tokens,
                                .options = {.max_tokens = kTokens, .depth = arm.depth}});
    EXPECT_TRUE(done.ok()) << done.error().message;
    EXPECT_EQ(target.length() + 1, static_cast<int>(outcome.tokens.size()));
    outcome.bits = target.bits();
    if (done.ok()) outcome.stats = done->stats;
    return outcome;
  }

  // The same tokens again, generated rows cut into steps of `width`.
  std::map<int, std::uint64_t> replay(std::span<const TokenId> tokens, std::size_t prompt, const LatentSnapshot& start,
                                      int width) {
    ModelSequence sequence(*model_, *backends_[1], {.cache_dtype = cache_dtype_});
    EXPECT_TRUE(sequence.cache().restore(start).ok());
    RecordingTimeline target(sequence);
    const auto first = static_cast<std::size_t>(start.length);
    EXPECT_TRUE(target.step(tokens.subspan(first, prompt - first), Role::kPrompt, LogitsWanted::kLast).ok());
    for (std::size_t at = prompt; at + 1 < tokens.size();) {
      const std::size_t rows = std::min<std::size_t>(static_cast<std::size_t>(width), tokens.size() - 1 - at);
      EXPECT_TRUE(target.step(tokens.subspan(at, rows), Role::kGenerated, LogitsWanted::kAll).ok());
      at += rows;
    }
    return target.bits();
  }

  void expect_equal_arms(std::span<const TokenId> prompt) {
    const LatentSnapshot start = prefill(prompt);
    for (const SamplingOptions& sampling :
         {SamplingOptions{}, SamplingOptions{.temperature = 0.4, .top_k = 50, .top_p = 0.95, .seed = 7}}) {
      const std::string what =
          std::to_string(prompt.size()) + " tokens, temperature " + std::to_string(sampling.temperature);
      const RecordedRun plain = run(prompt, start, sampling, {});
      std::vector<Arm> arms = {
          {DrafterKind::kNone, 0, 2}, {DrafterKind::kDraftModel, 4, 2}, {DrafterKind::kLookup, 8, 1}};
      for (int depth = 1; depth <= 8; ++depth) arms.push_back({DrafterKind::kMtp, depth, 1 + depth % 2});
      for (const Arm& arm : arms) {
        const RecordedRun other = run(prompt, start, sampling, arm);
        EXPECT_EQ(other.tokens, plain.tokens) << what << ", depth " << arm.depth;
        EXPECT_EQ(other.bits, plain.bits) << what << ", depth " << arm.depth;
        drafted_ += arm.depth > 0;
        counted_ += arm.depth > 0 && counts(other, arm.depth);
        if (arm.drafts == DrafterKind::kMtp && counts(other, arm.depth)) counted_depths_.insert(arm.depth);
        if (arm.drafts == DrafterKind::kDraftModel)
          draft_model_counts_ = draft_model_counts_ || counts(other, arm.depth);
        if (arm.drafts == DrafterKind::kLookup) lookup_counts_ = lookup_counts_ || counts(other, arm.depth);
      }
      for (const int width : {1, 2, 3, 5, 7, 8, 11, 15, 16}) {
        EXPECT_EQ(replay(plain.tokens, prompt.size(), start, width), plain.bits) << what << ", steps of " << width;
      }
    }
  }

  void expect_every_kind_counted() {
    EXPECT_EQ(counted_depths_.size(), 8U) << "each MTP depth was drafted, rejected and fully accepted in some run";
    EXPECT_TRUE(draft_model_counts_);
    EXPECT_TRUE(lookup_counts_);
    RecordProperty("runs_with_drafts", drafted_);
    RecordProperty("runs_that_count", counted_);
  }

  bool widest() const { return backends_[0]->info().isa == open_backend({.device = "cpu"}).value()->info().isa; }

  std::vector<std::unique_ptr<Backend>> backends_;
  std::optional<Model> model_, draft_;
  std::vector<TokenId> short_ids_;
  DType cache_dtype_ = DType::kBf16;
  std::set<int> counted_depths_;
  bool draft_model_counts_ = false, lookup_counts_ = false;
  int drafted_ = 0, counted_ = 0;
};

TEST_P(BitEquality, ShortPrompts) {
  const std::vector<std::size_t> lengths =
      widest() ? std::vector<std::size_t>{5, 26, 120, 300} : std::vector<std::size_t>{5, 300};
  for (const std::size_t length : lengths) expect_equal_arms(std::span(short_ids_).first(length));
  expect_every_kind_counted();
}

TEST_P(BitEquality, LongPrompts) {
  if (!widest()) GTEST_SKIP() << "long prompts run on the widest instruction set";
  const auto data = test::test_data_folder();
  if (!data.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the long document is read from there";
  const auto ids = test::read_golden_ids(*data + "/models/latte-tiny/golden_long.safetensors", "ids");
  ASSERT_TRUE(ids.ok());
  for (const std::size_t length : {1021, 6000}) expect_equal_arms(std::span(*ids).first(length));
  expect_every_kind_counted();
}

// The rows of a snapshot again and again, up to `length`: what a row holds is nothing to bit equality.
LatentSnapshot repeated(const LatentSnapshot& rows, int length) {
  LatentSnapshot longer{.length = length, .layers = rows.layers, .row = rows.row, .bytes = {}};
  const std::size_t row = rows.bytes.size() / static_cast<std::size_t>(rows.layers * rows.length);
  longer.bytes.reserve(row * static_cast<std::size_t>(rows.layers) * static_cast<std::size_t>(length));
  for (int layer = 0; layer < rows.layers; ++layer) {
    for (int i = 0; i < length; ++i) {
      const std::size_t at = static_cast<std::size_t>(layer * rows.length + i % rows.length) * row;
      longer.bytes.insert(longer.bytes.end(), rows.bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          rows.bytes.begin() + static_cast<std::ptrdiff_t>(at + row));
    }
  }
  return longer;
}

// Rows on both sides of a border between length classes, where a step attends in two calls.
TEST_P(BitEquality, AcrossALengthClass) {
  if (!widest()) GTEST_SKIP() << "long prompts run on the widest instruction set";
  std::vector<TokenId> prompt;
  constexpr int kBorder = 16384;
  static_assert(leaf_length(kBorder) < leaf_length(kBorder + 1));
  while (prompt.size() < kBorder - kTokens / 2) prompt.push_back(short_ids_[prompt.size() % short_ids_.size()]);
  const LatentSnapshot start =
      repeated(prefill(std::span(prompt).first(1000)), static_cast<int>(prompt.size()) - kReadByEachArm);
  const RecordedRun plain = run(prompt, start, {}, {});
  for (const Arm& arm : {Arm{DrafterKind::kMtp, 3, 2}, Arm{DrafterKind::kLookup, 8, 1}}) {
    const RecordedRun other = run(prompt, start, {}, arm);
    EXPECT_EQ(other.tokens, plain.tokens);
    EXPECT_EQ(other.bits, plain.bits);
  }
  for (const int width : {3, 16}) EXPECT_EQ(replay(plain.tokens, prompt.size(), start, width), plain.bits);
}

// A stored row is a function of that row alone, so codes and halves change no more than bf16 does.
TEST_P(BitEquality, OnRowsOfOtherTypes) {
  const auto prompt = std::span<const TokenId>(short_ids_).first(300);
  for (const DType type : {DType::kQ8, DType::kF16}) {
    cache_dtype_ = type;
    const LatentSnapshot start = prefill(prompt);
    const RecordedRun plain = run(prompt, start, {}, {});
    for (const Arm& arm : {Arm{DrafterKind::kNone, 0, 2}, Arm{DrafterKind::kMtp, 1, 1}, Arm{DrafterKind::kMtp, 4, 2},
                           Arm{DrafterKind::kDraftModel, 3, 1}, Arm{DrafterKind::kLookup, 8, 2}}) {
      const RecordedRun other = run(prompt, start, {}, arm);
      EXPECT_EQ(other.tokens, plain.tokens) << dtype_name(type) << ", depth " << arm.depth;
      EXPECT_EQ(other.bits, plain.bits) << dtype_name(type) << ", depth " << arm.depth;
      EXPECT_TRUE(arm.drafts != DrafterKind::kMtp || counts(other, arm.depth)) << dtype_name(type);
    }
    for (const int width : {2, 7, 16})
      EXPECT_EQ(replay(plain.tokens, prompt.size(), start, width), plain.bits) << dtype_name(type) << ", " << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, BitEquality, ::testing::Values("scalar", "avx2", "avx512", "avx512_bf16", "amx"),
                         [](const auto& isa) { return isa.param; });

}  // namespace
}  // namespace latte
