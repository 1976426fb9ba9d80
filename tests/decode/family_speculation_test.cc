// Speculation changes nothing in any family: ids and logits' bits of drafted runs are those of plain decoding, with
// draft models of another family and of the same, on tiny models of random weights.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <ostream>

#include "decode/decode_rig.h"
#include "decode/draft_model_drafter.h"
#include "decode/lookup_drafter.h"
#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "model/sequence.h"
#include "support/golden.h"
#include "support/test_model.h"

namespace latte {
namespace {

using test::DrafterKind;

// Passes everything on and keeps the logits that each position was last given.
class KeepingTimeline final : public Timeline {
 public:
  explicit KeepingTimeline(ModelSequence& inner) : inner_(inner) {}
  int length() const override { return inner_.length(); }
  int context() const override { return inner_.context(); }
  int vocab() const override { return inner_.vocab(); }
  Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) override {
    const int end = inner_.length() + static_cast<int>(ids.size());
    Result<StepResult> result = inner_.step(ids, role, wanted);
    if (!result.ok()) return result;
    const MatView<const float> rows = result->logits;
    for (int i = 0; i < rows.rows; ++i)
      logits_[end - static_cast<int>(rows.rows) + i].assign(rows.row(i), rows.row(i) + rows.cols);
    return result;
  }
  bool can_rewind_to(int length) const override { return inner_.can_rewind_to(length); }
  Status rewind_to(int length) override {
    logits_.erase(logits_.lower_bound(length), logits_.end());
    return inner_.rewind_to(length);
  }
  const std::map<int, std::vector<float>>& logits() const { return logits_; }

 private:
  ModelSequence& inner_;
  std::map<int, std::vector<float>> logits_;
};

// A target and a draft model with rows for its ids; ids past them are drafted in vain.
struct Pair {
  std::string target, draft;
};

void PrintTo(const Pair& pair, std::ostream* out) { *out << pair.target << " drafted by " << pair.draft; }

struct KeptRun {
  std::vector<TokenId> tokens;
  std::map<int, std::vector<float>> logits;
  std::vector<std::byte> cache;
  DecodeStats stats;
};

constexpr int kContext = 96;

class FamilySpeculation : public ::testing::TestWithParam<std::tuple<Pair, std::string>> {
 protected:
  void SetUp() override {
    const auto& [pair, isa] = GetParam();
    const auto target = test::family_folder(pair.target), draft = test::family_folder(pair.draft);
    if (!target.has_value() || !draft.has_value()) GTEST_SKIP() << "LATTE_TEST_DATA is not set";
    for (const int threads : {1, 2}) {
      auto backend = open_backend({.device = "cpu", .isa = isa, .threads = threads, .compute = DType::kF32});
      if (!backend.ok()) GTEST_SKIP() << backend.error().message;
      backends_.push_back(std::move(*backend));
    }
    Result<Model> large = load_model(*target), small = load_model(*draft);
    ASSERT_TRUE(large.ok() && small.ok());
    ASSERT_LE(large->config.vocab, small->config.vocab) << "the draft model can be fed every id";
    target_.emplace(std::move(*large));
    draft_.emplace(std::move(*small));
    const auto ids = test::read_golden_ids(*target + "/golden.safetensors", "ids");
    ASSERT_TRUE(ids.ok());
    prompt_.assign(ids->begin(), ids->begin() + 30);
  }

  KeptRun run(DrafterKind drafts, int depth, const SamplingOptions& sampling) {
    Backend& backend = *backends_[static_cast<std::size_t>(depth % 2)];
    const SequenceOptions options{.context = kContext};
    ModelSequence sequence(*target_, backend, options);
    KeepingTimeline target(sequence);
    ModelSequence small(*draft_, backend, options);
    std::optional<MtpSequence> mtp;
    std::unique_ptr<Drafter> drafter;
    if (drafts == DrafterKind::kDraftModel) drafter = std::make_unique<DraftModelDrafter>(small);
    if (drafts == DrafterKind::kLookup) drafter = std::make_unique<LookupDrafter>();
    if (drafts == DrafterKind::kMtp)
      drafter = std::make_unique<MtpDrafter>(mtp.emplace(*target_, backend, options, sequence.scratch()));
    KeptRun outcome{.tokens = prompt_, .logits = {}, .cache = {}, .stats = {}};
    const Sampler sampler(sampling, target_->config.vocab);
    const auto done = generate({.target = target,
                                .drafter = drafter.get(),
                                .sampler = sampler,
                                .tokens = outcome.tokens,
                                .options = {.max_tokens = 50, .depth = depth}});
    EXPECT_TRUE(done.ok()) << done.error().message;
    if (!done.ok()) return outcome;
    outcome.logits = target.logits();
    outcome.cache = sequence.cache().snapshot().bytes;
    outcome.stats = done->stats;
    const PathCounters& paths = sequence.paths();
    const bool gqa = target_->config.attention == AttentionKind::kGqa;
    EXPECT_EQ(gqa ? paths.absorbed_steps + paths.materialised_steps : paths.gqa_steps, 0);
    EXPECT_EQ(gqa ? paths.gqa_steps : paths.absorbed_steps + paths.materialised_steps, outcome.stats.rounds + 1);
    return outcome;
  }

  void expect_same(const KeptRun& drafted, const KeptRun& plain, const std::string& what) {
    EXPECT_EQ(drafted.tokens, plain.tokens) << what;
    EXPECT_EQ(drafted.logits, plain.logits) << what;
    EXPECT_EQ(drafted.cache, plain.cache) << what;
  }

  std::vector<std::unique_ptr<Backend>> backends_;
  std::optional<Model> target_, draft_;
  std::vector<TokenId> prompt_;
};

TEST_P(FamilySpeculation, ChangesNoBit) {
  std::int64_t drafted = 0, rejected = 0;
  for (const SamplingOptions& sampling :
       {SamplingOptions{}, SamplingOptions{.temperature = 0.7, .top_k = 50, .top_p = 0.95, .seed = 7}}) {
    const KeptRun plain = run(DrafterKind::kNone, 0, sampling);
    for (const int depth : {1, 2, 4, 7, 15}) {
      const KeptRun other = run(DrafterKind::kDraftModel, depth, sampling);
      expect_same(other, plain, "draft model, depth " + std::to_string(depth));
      drafted += other.stats.drafted;
      rejected += other.stats.drafted - other.stats.accepted;
    }
    expect_same(run(DrafterKind::kLookup, 8, sampling), plain, "lookup");
    if (target_->has_mtp()) expect_same(run(DrafterKind::kMtp, 3, sampling), plain, "mtp");
  }
  EXPECT_GT(drafted, 0);
  if (std::get<0>(GetParam()).target == std::get<0>(GetParam()).draft) {
    EXPECT_EQ(rejected, 0) << "a model agrees with itself";
  } else {
    EXPECT_GT(rejected, 0) << "models of other weights disagree somewhere";
  }
}

// Every folder is a target, most of them of a draft model of another family.
const Pair kPairs[] = {{"deepseek_v3", "deepseek_v2_full"},
                       {"deepseek_v3_negbias", "deepseek_v3"},
                       {"deepseek_v2_full", "moonlight"},
                       {"deepseek_v2_lite", "youtu"},
                       {"kimi_k2", "llama"},
                       {"moonlight", "dots1"},
                       {"glm4_moe_lite", "qwen2"},
                       {"youtu", "youtu_rq"},
                       {"youtu_rq", "youtu"},
                       {"youtu_vl", "deepseek_v3"},
                       {"minicpm3", "llama"},
                       {"minicpm3_untied", "kimi_k2"},
                       {"minicpm3_longrope", "llama"},
                       {"llama", "minicpm3"},
                       {"qwen2", "glm4_moe_lite"},
                       {"qwen3", "qwen2"},
                       {"qwen3_moe", "qwen3"},
                       {"dots1", "kimi_k2"},
                       {"llama", "llama"},
                       {"dots1", "dots1"},
                       {"qwen3", "qwen3"}};

std::string name_of(const ::testing::TestParamInfo<std::tuple<Pair, std::string>>& info) {
  const Pair& pair = std::get<0>(info.param);
  return pair.target + "_" + pair.draft + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(Families, FamilySpeculation,
                         ::testing::Combine(::testing::ValuesIn(kPairs),
                                            ::testing::Values("scalar", "avx2", "avx512", "avx512_bf16", "amx")),
                         name_of);

}  // namespace
}  // namespace latte
