// Sessions of models with grouped-query attention: the same promises as those of latent attention.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "family_engine.h"
#include "latte/report.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

class GqaSession : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("LATTE_TEST_DATA");
    if (data == nullptr) GTEST_SKIP() << "LATTE_TEST_DATA is not set: the models are not in the repository";
    families_ = std::string(data) + "/models/families/";
  }
  EngineOptions options(const std::string& family, const std::string& draft = "") const {
    EngineOptions options;
    options.model = families_ + family;
    if (!draft.empty()) options.draft_model = families_ + draft;
    options.threads = 1;
    return options;
  }
  GenerateResult run(Session& session, const RunOptions& how) const {
    const Result<GenerateResult> result = session.generate(prompt_, how);
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() ? *result : GenerateResult{};
  }

  std::string families_;
  std::vector<std::int32_t> prompt_ = some_ids(20);
};

TEST_F(GqaSession, DraftModelOfAnotherFamilyChangesNoId) {
  const Engine engine = open_or_die(options("qwen3_moe", "qwen3"));
  for (const RunOptions& how : {greedy(40), sampled(40, 7)}) {
    Session plain = session_or_die(engine), drafted = session_or_die(engine, SpecType::kDraft, 4),
            lookup = session_or_die(engine, SpecType::kLookup);
    const GenerateResult expected = run(plain, how), draft = run(drafted, how);
    EXPECT_EQ(draft.ids, expected.ids);
    EXPECT_GT(draft.drafted, 0);
    EXPECT_EQ(run(lookup, how).ids, expected.ids);
    EXPECT_EQ(expected.paths.gqa_steps, 40);
    EXPECT_EQ(expected.paths.gqa_rows, 20 + 39);
    EXPECT_EQ(expected.paths.absorbed_steps + expected.paths.materialised_steps, 0);
  }
}

TEST_F(GqaSession, RewindAndSnapshotAreExact) {
  const Engine engine = open_or_die(options("llama", "llama"));
  for (const SpecType spec : {SpecType::kNone, SpecType::kDraft}) {
    Session session = session_or_die(engine, spec);
    const std::vector<std::int32_t> first = run(session, greedy(24)).ids;
    const Snapshot kept = session.snapshot();
    ASSERT_TRUE(session.rewind_to(10).ok());
    EXPECT_EQ(run(session, greedy(24)).ids, first);
    Session other = session_or_die(engine, spec);
    ASSERT_TRUE(other.restore(kept).ok());
    EXPECT_EQ(other.tokens().size(), session.tokens().size());
  }
}

// Every head's keys and values are pieces of their own, codes and a scale.
TEST_F(GqaSession, RowsOfCodesAndHalvesSpeculateAndRewind) {
  for (const auto& [type, bytes] : {std::pair(CacheType::kQ8, 20 + 4), std::pair(CacheType::kF16, 2 * 20)}) {
    EngineOptions coded = options("qwen3");
    coded.cache = type;
    const Engine engine = open_or_die(coded);
    EXPECT_EQ(engine.info().cache_bytes_per_token, bytes * 3 * 2 * 2);
    Session plain = session_or_die(engine), drafting = session_or_die(engine, SpecType::kLookup);
    const std::vector<int> expected = run(plain, greedy(40)).ids;
    EXPECT_EQ(run(drafting, greedy(40)).ids, expected);
    ASSERT_TRUE(plain.rewind_to(10).ok());
    EXPECT_EQ(run(plain, greedy(40)).ids, expected);
  }
}

TEST_F(GqaSession, FormCannotBeForced) {
  EngineOptions forced = options("qwen2");
  forced.path = PathChoice::kMaterialised;
  const Result<Engine> engine = Engine::open(forced);
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(
      engine.error().message,
      "[open] --mla-path materialised with family qwen2, whose attention is grouped-query and has one form: leave "
      "it at auto");
}

TEST_F(GqaSession, CacheBytesAreThoseOfKeysAndValues) {
  const Engine engine = open_or_die(options("qwen3"));
  EXPECT_EQ(engine.info().cache_bytes_per_token, 4 * 3 * 2 * 2 * 20);
  EXPECT_EQ(engine.info().family, "qwen3");
}

// Keys that one list has rotated are of no use to a session of the other.
TEST_F(GqaSession, CacheFileOfTheOtherListOfLongRopeIsRefused) {
  const TempFolder folder;
  EngineOptions within = options("minicpm3_longrope"), past = within;
  within.context = 32;
  past.context = 64;
  const Engine short_list = open_or_die(within), long_list = open_or_die(past);
  Session saved = session_or_die(short_list), same = session_or_die(short_list), other = session_or_die(long_list);
  run(saved, greedy(4));
  ASSERT_TRUE(saved.save(folder.file("rows")).ok());
  EXPECT_TRUE(same.load(folder.file("rows")).ok());
  const Result<std::string> refused = other.load(folder.file("rows"));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("short rope list\", this session computes by"), std::string::npos)
      << refused.error().message;
}

TEST_F(GqaSession, CacheFileOfKeysAndValuesGoesOnExactly) {
  const TempFolder folder;
  const Engine engine = open_or_die(options("qwen3_moe", "qwen3"));
  Session whole = session_or_die(engine, SpecType::kDraft), first = session_or_die(engine, SpecType::kDraft),
          second = session_or_die(engine, SpecType::kDraft);
  const std::vector<std::int32_t> expected = run(whole, greedy(30)).ids;
  run(first, greedy(12));
  ASSERT_TRUE(first.save(folder.file("rows")).ok());
  const Result<std::string> loaded = second.load(folder.file("rows"));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  const auto fed = static_cast<std::ptrdiff_t>(second.tokens().size()) - 20;  // the last token may not be fed yet
  EXPECT_GE(fed, 11);
  const Result<GenerateResult> rest = second.generate(second.tokens(), greedy(30 - static_cast<int>(fed)));
  ASSERT_TRUE(rest.ok()) << rest.error().message;
  EXPECT_EQ(rest->ids, std::vector<std::int32_t>(expected.begin() + fed, expected.end()));
}

TEST_F(GqaSession, DeclaredContextPicksTheListOfLongRope) {
  EngineOptions within = options("minicpm3_longrope"), past = within;
  within.context = 32;
  past.context = 33;
  const Engine short_list = open_or_die(within), long_list = open_or_die(past);
  Session a = session_or_die(short_list), b = session_or_die(long_list);
  EXPECT_NE(run(a, greedy(12)).ids, run(b, greedy(12)).ids);
  EXPECT_EQ(inspect(short_list)->rope, "longrope, short list: context 32 is within 32");
  EXPECT_EQ(inspect(long_list)->rope, "longrope, long list: context 33 is past 32");
}

}  // namespace
}  // namespace latte::test
