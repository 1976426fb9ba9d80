#include "latte/session.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <numeric>
#include <optional>
#include <thread>

#include "family_engine.h"
#include "support/chat_replay.h"

namespace latte::test {
namespace {

std::vector<std::int32_t> ids_of(Session& session, std::span<const std::int32_t> prompt, const RunOptions& options) {
  const Result<GenerateResult> result = session.generate(prompt, options);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return result.ok() ? result->ids : std::vector<std::int32_t>{};
}

class SessionTest : public ::testing::Test {
 protected:
  Engine engine_ = open_or_die(family_options());
  std::vector<std::int32_t> prompt_ = some_ids(9);
};

TEST_F(SessionTest, SpeculationChangesNoId) {
  for (const RunOptions& options : {greedy(40), sampled(40, 7)}) {
    Session plain = session_or_die(engine_);
    const std::vector<std::int32_t> expected = ids_of(plain, prompt_, options);
    ASSERT_EQ(expected.size(), 40u);
    for (int depth = 0; depth <= 8; ++depth) {
      Session mtp = session_or_die(engine_, SpecType::kMtp, depth);
      EXPECT_EQ(ids_of(mtp, prompt_, options), expected) << "mtp depth " << depth;
    }
    Session lookup = session_or_die(engine_, SpecType::kLookup);
    EXPECT_EQ(ids_of(lookup, prompt_, options), expected) << "lookup";
  }
}

TEST_F(SessionTest, ThreadsChangeNoId) {
  EngineOptions options = family_options();
  options.threads = 2;
  const Engine two = open_or_die(options);
  Session one_thread = session_or_die(engine_, SpecType::kMtp, 2), two_threads = session_or_die(two, SpecType::kMtp, 2);
  EXPECT_EQ(ids_of(two_threads, prompt_, sampled(16, 5)), ids_of(one_thread, prompt_, sampled(16, 5)));
}

TEST_F(SessionTest, DraftModelEqualToTheTargetIsAcceptedWhole) {
  EngineOptions options = family_options();
  options.draft_model = family_folder();
  const Engine engine = open_or_die(options);
  Session drafted = session_or_die(engine, SpecType::kAuto);
  const Result<GenerateResult> result = drafted.generate(prompt_, greedy(41));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->spec_type, "draft");
  EXPECT_EQ(result->draft_depth, 8);
  EXPECT_GT(result->drafted, 0);
  EXPECT_EQ(result->accepted, result->drafted);
  Session plain = session_or_die(engine_);
  EXPECT_EQ(result->ids, ids_of(plain, prompt_, greedy(41)));
}

TEST_F(SessionTest, AutoTakesMtpAndChoosesItsDepth) {
  Session session = session_or_die(engine_, SpecType::kAuto);
  const Result<GenerateResult> result = session.generate(prompt_, greedy(20));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->spec_type, "mtp");
  EXPECT_EQ(result->draft_depth, 4);
  EXPECT_GT(result->drafted, 0);
  ASSERT_EQ(result->rounds_per_depth.size(), 5u);
  EXPECT_GE(result->rounds_per_depth[0], 2) << "what a plain step takes is measured, too";
  EXPECT_EQ(std::accumulate(result->rounds_per_depth.begin(), result->rounds_per_depth.end(), std::int64_t{0}),
            result->rounds);
}

TEST_F(SessionTest, UnavailableDrafterIsRefused) {
  const Result<Session> session = Session::open(engine_, {.spec = SpecType::kDraft, .num_draft_tokens = std::nullopt});
  ASSERT_FALSE(session.ok());
  EXPECT_NE(session.error().message.find("-md"), std::string::npos) << session.error().message;
}

TEST_F(SessionTest, DepthOutOfRangeIsRefused) {
  EXPECT_FALSE(Session::open(engine_, {.spec = SpecType::kMtp, .num_draft_tokens = 9}).ok());
  EXPECT_FALSE(Session::open(engine_, {.spec = SpecType::kLookup, .num_draft_tokens = 16}).ok());
  EXPECT_TRUE(Session::open(engine_, {.spec = SpecType::kLookup, .num_draft_tokens = 15}).ok());
}

TEST_F(SessionTest, SamePromptFiveTimesGivesSameIds) {
  Session session = session_or_die(engine_, SpecType::kMtp);
  const std::vector<std::int32_t> first = ids_of(session, prompt_, sampled(30, 3));
  for (int again = 1; again < 5; ++again) EXPECT_EQ(ids_of(session, prompt_, sampled(30, 3)), first) << again;
}

// Hard case 23: nothing of an earlier text, its seed or its penalties is left in a session that starts another.
TEST_F(SessionTest, ARunAfterAnotherIsTheRunOfAFreshSession) {
  RunOptions penalised = sampled(30, 3);
  penalised.sampling->repeat_penalty = 1.3;
  penalised.sampling->frequency_penalty = 0.4;
  std::vector<std::int32_t> other = some_ids(14);
  other[0] = 77;  // no common part with prompt_
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    for (RunOptions options : {greedy(30), sampled(30, 3), penalised}) {
      options.logprobs = 2;
      Session fresh = session_or_die(engine_, spec), used = session_or_die(engine_, spec);
      const Result<GenerateResult> expected = fresh.generate(prompt_, options);
      for (const bool reset : {false, true}) {
        ids_of(used, other, sampled(25, 99));
        if (reset) used.reset();
        const Result<GenerateResult> again = used.generate(prompt_, options);
        ASSERT_TRUE(expected.ok() && again.ok());
        EXPECT_EQ(again->cached_tokens, 0);
        EXPECT_EQ(again->ids, expected->ids) << word(spec);
        EXPECT_EQ(again->drafted, expected->drafted) << word(spec);
        EXPECT_EQ(again->accepted, expected->accepted) << word(spec);
        ASSERT_EQ(again->logprobs.size(), expected->logprobs.size());
        for (std::size_t i = 0; i < again->logprobs.size(); ++i)
          EXPECT_EQ(again->logprobs[i].chosen.logprob, expected->logprobs[i].chosen.logprob) << i;
        EXPECT_TRUE(cached_bits(used) == cached_bits(fresh)) << word(spec);
      }
    }
  }
}

TEST_F(SessionTest, WarmCacheFeedsOnlyWhatIsMissing) {
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    Session whole = session_or_die(engine_, spec);
    const std::vector<std::int32_t> expected = ids_of(whole, prompt_, greedy(30));
    Session parts = session_or_die(engine_, spec);
    std::vector<std::int32_t> text = prompt_;
    const std::vector<std::int32_t> begun = ids_of(parts, text, greedy(12));
    text.insert(text.end(), begun.begin(), begun.end());
    const Result<GenerateResult> rest = parts.generate(text, greedy(18));
    ASSERT_TRUE(rest.ok()) << rest.error().message;
    EXPECT_EQ(rest->cached_tokens, static_cast<int>(text.size()) - 1);
    std::vector<std::int32_t> all = begun;
    all.insert(all.end(), rest->ids.begin(), rest->ids.end());
    EXPECT_EQ(all, expected) << word(spec);
  }
}

TEST_F(SessionTest, OwnTokensMayBeThePrompt) {
  Session session = session_or_die(engine_, SpecType::kMtp, 2);
  ids_of(session, prompt_, greedy(8));
  const std::vector<std::int32_t> before(session.tokens().begin(), session.tokens().end());
  const Result<GenerateResult> result = session.generate(session.tokens(), greedy(45));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->prompt_ids, before);
  Session fresh = session_or_die(engine_, SpecType::kMtp, 2);
  const auto written = static_cast<std::ptrdiff_t>(before.size() - prompt_.size());
  const std::vector<std::int32_t> whole = ids_of(fresh, prompt_, greedy(static_cast<int>(written) + 45));
  EXPECT_EQ(result->ids, std::vector<std::int32_t>(whole.begin() + written, whole.end()));
  EXPECT_TRUE(session.logits(session.tokens(), {}, {}).ok());
}

TEST_F(SessionTest, ChangedPromptKeepsTheCommonPart) {
  Session session = session_or_die(engine_, SpecType::kMtp);
  ids_of(session, prompt_, greedy(10));
  std::vector<std::int32_t> changed = prompt_;
  changed[6] = 200;
  const Result<GenerateResult> result = session.generate(changed, greedy(10));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->cached_tokens, 6);
  EXPECT_EQ(session.length(), 9 + 10 - 1);
}

TEST_F(SessionTest, ContextEndStopsAtTheExactToken) {
  EngineOptions options = family_options();
  options.context = 20;
  const Engine engine = open_or_die(options);
  for (const int depth : {0, 1, 3, 8}) {
    Session session = session_or_die(engine, SpecType::kMtp, depth);
    RunOptions run = greedy(0);
    run.max_tokens.reset();
    const Result<GenerateResult> result = session.generate(prompt_, run);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->finish_reason, "length");
    EXPECT_EQ(result->ids.size(), 20u - 9u + 1u) << depth;
    EXPECT_EQ(session.length(), 20);
  }
}

TEST_F(SessionTest, APromptThatFillsTheContextYieldsItsOneToken) {
  EngineOptions options = family_options();
  options.context = 20;
  const Engine engine = open_or_die(options);
  Session plain = session_or_die(engine_);
  const std::vector<std::int32_t> expected = ids_of(plain, some_ids(20), greedy(1));
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    Session session = session_or_die(engine, spec);
    const Result<GenerateResult> result = session.generate(some_ids(20), greedy(5));
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->ids, expected);
    EXPECT_EQ(result->finish_reason, "length");
    const Result<GenerateResult> longer = session.generate(some_ids(21), greedy(5));
    ASSERT_FALSE(longer.ok());
    EXPECT_NE(longer.error().message.find("21 tokens, expected at most 20"), std::string::npos)
        << longer.error().message;
  }
}

// Hard case 8, request by request and with nothing in between.
TEST_F(SessionTest, ARefusedRequestIsNotSeenByTheNext) {
  std::vector<std::int32_t> foreign = some_ids(9);
  foreign[8] = 272;
  RunOptions insane = greedy(4);
  insane.sampling = SamplingChoice{.temperature = -1};
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    for (const RunOptions& options : {greedy(20), sampled(20, 6)}) {
      Session fresh = session_or_die(engine_, spec), session = session_or_die(engine_, spec);
      const std::vector<std::int32_t> first = ids_of(fresh, some_ids(12), options);
      const std::vector<std::int32_t> expected = ids_of(fresh, prompt_, options);
      EXPECT_EQ(ids_of(session, some_ids(12), options), first);
      EXPECT_FALSE(session.generate(some_ids(65), options).ok());
      EXPECT_FALSE(session.generate(std::span<const std::int32_t>{}, options).ok());
      EXPECT_FALSE(session.generate(prompt_, insane).ok());
      EXPECT_FALSE(session.generate(foreign, options).ok());
      EXPECT_LE(session.length(), 8) << "no row but those of the common part";
      EXPECT_EQ(ids_of(session, prompt_, options), expected) << word(spec);
      EXPECT_EQ(session.length(), static_cast<int>(prompt_.size()) + 20 - 1);
    }
  }
}

TEST_F(SessionTest, FailedRequestLeavesTheSessionUsable) {
  Session fresh = session_or_die(engine_, SpecType::kMtp);
  const std::vector<std::int32_t> expected = ids_of(fresh, prompt_, greedy(12));

  Session session = session_or_die(engine_, SpecType::kMtp);
  ids_of(session, some_ids(5), greedy(4));
  EXPECT_FALSE(session.generate(some_ids(65), greedy(4)).ok());
  const std::vector<std::int32_t> foreign = {3, 4, 272};
  EXPECT_FALSE(session.generate(foreign, greedy(4)).ok());
  EXPECT_FALSE(session.generate(std::span<const std::int32_t>{}, greedy(4)).ok());
  EXPECT_FALSE(session.generate("text", greedy(4)).ok()) << "there is no tokenizer";
  session.reset();
  EXPECT_EQ(ids_of(session, prompt_, greedy(12)), expected);
}

TEST_F(SessionTest, CallbackCancels) {
  Session session = session_or_die(engine_, SpecType::kMtp, 3);
  int seen = 0;
  const Result<GenerateResult> result =
      session.generate(prompt_, greedy(30), [&](const TokenEvent&) { return ++seen < 7; });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->finish_reason, "cancelled");
  EXPECT_EQ(result->ids.size(), 7u);
  EXPECT_EQ(session.length(), 9 + 7 - 1);
}

TEST_F(SessionTest, SnapshotBringsBackTheSameFuture) {
  Session session = session_or_die(engine_, SpecType::kMtp, 2);
  ids_of(session, prompt_, greedy(6));
  const Snapshot snapshot = session.snapshot();
  EXPECT_EQ(snapshot.length(), session.length());
  std::vector<std::int32_t> text(session.tokens().begin(), session.tokens().end());
  const Result<GenerateResult> expected = session.generate(text, greedy(20));
  ids_of(session, some_ids(30), greedy(5));
  Session other = session_or_die(engine_, SpecType::kMtp, 2);
  for (Session* restored : {&session, &other}) {
    ASSERT_TRUE(restored->restore(snapshot).ok());
    EXPECT_EQ(restored->length(), snapshot.length());
    const Result<GenerateResult> again = restored->generate(text, greedy(20));
    ASSERT_TRUE(expected.ok() && again.ok());
    EXPECT_EQ(again->ids, expected->ids);
    EXPECT_EQ(again->rounds, expected->rounds) << "the drafter came back too";
    EXPECT_EQ(again->accepted, expected->accepted);
  }
}

TEST_F(SessionTest, SnapshotOfAnotherDrafterStillServes) {
  Session mtp = session_or_die(engine_, SpecType::kMtp, 2), lookup = session_or_die(engine_, SpecType::kLookup);
  ids_of(mtp, prompt_, greedy(6));
  ASSERT_TRUE(lookup.restore(mtp.snapshot()).ok());
  ASSERT_TRUE(mtp.restore(lookup.snapshot()).ok());
  EXPECT_EQ(ids_of(mtp, prompt_, greedy(9)), ids_of(lookup, prompt_, greedy(9)));
}

TEST_F(SessionTest, SnapshotOfAnotherEngineIsRefused) {
  Session session = session_or_die(engine_, SpecType::kMtp);
  const std::vector<std::int32_t> expected = ids_of(session, prompt_, greedy(6));
  std::optional<Snapshot> foreign;
  {
    const Engine other = open_or_die(family_options());
    Session from = session_or_die(other, SpecType::kMtp);
    ids_of(from, some_ids(12), greedy(3));
    foreign.emplace(from.snapshot());
    EXPECT_FALSE(session.restore(*foreign).ok()) << "the shape is the same, the model is not known to be";
  }
  const Engine third = open_or_die(family_options());
  EXPECT_FALSE(session_or_die(third, SpecType::kMtp).restore(*foreign).ok()) << "its engine is gone";
  EXPECT_EQ(ids_of(session, prompt_, greedy(6)), expected);
}

// The drafter's rewind moves rows on the device, which runs one operation at a time.
TEST_F(SessionTest, RewindAndResetTakeTheirTurnOnTheDevice) {
  Session running = session_or_die(engine_, SpecType::kMtp), waiting = session_or_die(engine_, SpecType::kMtp);
  ids_of(waiting, prompt_, greedy(6));
  std::atomic<bool> rewound = false, early = false;
  std::thread other;
  const auto on_token = [&](const TokenEvent&) {
    if (!other.joinable()) {
      other = std::thread([&] {
        EXPECT_TRUE(waiting.rewind_to(5).ok());
        rewound = true;
        waiting.reset();
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    early = early || rewound;
    return true;
  };
  EXPECT_TRUE(running.generate(prompt_, greedy(8), on_token).ok());
  other.join();
  EXPECT_FALSE(early) << "it did not wait for the call that held the device";
  EXPECT_TRUE(rewound);
  EXPECT_EQ(waiting.length(), 0);
}

TEST_F(SessionTest, NoMemoryIsAnErrorAndTheSessionGoesOn) {
  Session session = session_or_die(engine_, SpecType::kMtp, 3);
  const std::vector<std::int32_t> expected = ids_of(session, prompt_, greedy(12));
  int seen = 0;
  const Result<GenerateResult> failed = session.generate(prompt_, greedy(12), [&](const TokenEvent&) -> bool {
    if (++seen == 5) throw std::bad_alloc();
    return true;
  });
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(session.length(), 0) << "a call cut off anywhere may hold rows that no token speaks for";
  const Status logits =
      session.logits(prompt_, {}, [](int, std::span<const float>) -> Status { throw std::bad_alloc(); });
  ASSERT_FALSE(logits.ok());
  EXPECT_EQ(logits.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(ids_of(session, prompt_, greedy(12)), expected);
}

TEST_F(SessionTest, RewindPastTheEndIsRefused) {
  Session session = session_or_die(engine_);
  ids_of(session, prompt_, greedy(3));
  EXPECT_FALSE(session.rewind_to(12).ok());
  EXPECT_EQ(session.length(), 11);
  ASSERT_TRUE(session.rewind_to(4).ok());
  EXPECT_EQ(session.tokens().size(), 4u);
}

TEST_F(SessionTest, EmittedAndCountersAgree) {
  Session session = session_or_die(engine_, SpecType::kMtp, 3);
  const Result<GenerateResult> result = session.generate(prompt_, greedy(30));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->generated_tokens, 30);
  EXPECT_EQ(result->accepted + result->rounds + 1, 30);
  EXPECT_EQ(result->tested_per_position.size(), 3u);
  EXPECT_EQ(result->paths.absorbed_steps + result->paths.materialised_steps, result->rounds + 1);
  EXPECT_GT(result->peak_bytes, 1 << 20);
}

class LogitsTest : public SessionTest {
 protected:
  std::vector<float> logits(const LogitsOptions& options, std::vector<float>* mtp = nullptr) {
    Session session = session_or_die(engine_);
    std::vector<float> all;
    const auto into = [](std::vector<float>& rows) {
      return [&rows](int, std::span<const float> values) -> Status {
        rows.insert(rows.end(), values.begin(), values.end());
        return {};
      };
    };
    const Status done =
        session.logits(some_ids(40), options, into(all), mtp == nullptr ? LogitsSink{} : LogitsSink(into(*mtp)));
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return all;
  }
};

TEST_F(LogitsTest, RowsOfGeneratedStepsDoNotSeeTheCut) {
  const std::vector<float> narrow =
      logits({.steps = {24, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, .redo = 0, .role = StepRole::kAuto});
  const std::vector<float> wide = logits({.steps = {24, 16}, .redo = 0, .role = StepRole::kAuto});
  ASSERT_EQ(narrow.size(), 40u * 272u);
  EXPECT_EQ(std::memcmp(narrow.data(), wide.data(), narrow.size() * sizeof(float)), 0);
}

TEST_F(LogitsTest, RedoShowsInNoBitOfGeneratedRows) {
  std::vector<float> mtp_once, mtp_again;
  const std::vector<float> once =
      logits({.steps = {12, 12, 5, 5, 6}, .redo = 0, .role = StepRole::kGenerated}, &mtp_once);
  const std::vector<float> again =
      logits({.steps = {12, 12, 5, 5, 6}, .redo = 3, .role = StepRole::kGenerated}, &mtp_again);
  ASSERT_EQ(once.size(), again.size());
  ASSERT_EQ(mtp_once.size(), 39u * 272u);
  ASSERT_EQ(mtp_once.size(), mtp_again.size());
  EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(mtp_once.data(), mtp_again.data(), mtp_once.size() * sizeof(float)), 0);
}

TEST_F(LogitsTest, StepsThatDoNotAddUpAreRefused) {
  Session session = session_or_die(engine_);
  EXPECT_FALSE(session.logits(some_ids(10), {.steps = {4, 5}, .redo = 0, .role = StepRole::kAuto}, {}).ok());
  EXPECT_TRUE(session.logits(some_ids(10), {.steps = {4, 6}, .redo = 0, .role = StepRole::kAuto}, {}).ok());
}

}  // namespace
}  // namespace latte::test
