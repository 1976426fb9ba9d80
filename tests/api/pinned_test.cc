// --numerics pinned: what a warm session reads of a prompt has the bits of a cold one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "family_engine.h"
#include "support/chat_replay.h"
#include "support/temp_folder.h"

namespace latte::test {
namespace {

constexpr int kStep = 256;

Engine open_with(Numerics numerics) {
  EngineOptions options = family_options();
  options.numerics = numerics;
  options.context = 1200;
  return open_or_die(options);
}

// The prompt of a second turn: the first, its reply, and `more` ids.
std::vector<std::int32_t> next_prompt(const GenerateResult& turn, int more) {
  std::vector<std::int32_t> ids = turn.prompt_ids;
  ids.insert(ids.end(), turn.ids.begin(), turn.ids.end());
  const std::vector<std::int32_t> tail = some_ids(more);
  ids.insert(ids.end(), tail.begin(), tail.end());
  return ids;
}

bool same_rows_warm_and_cold(const Engine& engine, SpecType spec, int first_prompt, int more) {
  Session warm = session_or_die(engine, spec);
  const std::vector<std::int32_t> prompt = next_prompt(run(warm, some_ids(first_prompt), greedy(30)), more);
  const GenerateResult second = run(warm, prompt, greedy(20));
  Session cold = session_or_die(engine, spec);
  const GenerateResult fresh = run(cold, prompt, greedy(20));
  EXPECT_EQ(second.ids, fresh.ids);
  return cached_bits(warm) == cached_bits(cold) && last_logits(warm, prompt) == last_logits(cold, prompt);
}

TEST(Pinned, AWarmSessionHasTheBitsOfAColdOne) {
  const Engine engine = open_with(Numerics::kPinned);
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp, SpecType::kLookup}) {
    for (const int first : {1, 200, 256, 257, 530}) {
      for (const int more : {1, 300})
        EXPECT_TRUE(same_rows_warm_and_cold(engine, spec, first, more)) << first << " and " << more << " tokens";
    }
  }
}

TEST(Pinned, FastNumericsDoNotPromiseThat) {
  EXPECT_FALSE(same_rows_warm_and_cold(open_with(Numerics::kFast), SpecType::kNone, 300, 17));
}

TEST(Pinned, WholeStepsOfPromptRowsAreKept) {
  const Engine engine = open_with(Numerics::kPinned);
  Session session = session_or_die(engine);
  const GenerateResult first = run(session, some_ids(700), greedy(5));
  EXPECT_EQ(first.cached_tokens, 0);
  EXPECT_EQ(first.paths.materialised_steps, 3);
  EXPECT_EQ(run(session, some_ids(700), greedy(5)).cached_tokens, 2 * kStep);
  EXPECT_EQ(run(session, some_ids(kStep + 1), greedy(5)).cached_tokens, kStep);
  EXPECT_EQ(run(session, some_ids(kStep), greedy(5)).cached_tokens,
            0);  // the last row is always read: its step is the first
}

TEST(Pinned, RowsOfDecodingAreReadAgainAsPrompt) {
  const Engine engine = open_with(Numerics::kPinned);
  Session session = session_or_die(engine);
  const GenerateResult first = run(session, some_ids(250), greedy(30));
  const GenerateResult second = run(session, next_prompt(first, 1), greedy(5));
  EXPECT_EQ(second.cached_tokens, 0);
  EXPECT_EQ(second.paths.materialised_rows, 281);
  EXPECT_EQ(run(session, next_prompt(second, 1), greedy(5)).cached_tokens, kStep);
}

TEST(Pinned, LogitsAreThoseOfAnyCutIntoPromptSteps) {
  const Engine engine = open_with(Numerics::kPinned);
  const auto logits = [&](std::vector<int> steps) {
    Session session = session_or_die(engine);
    std::vector<float> all;
    const Status done = session.logits(some_ids(300), {.steps = std::move(steps), .redo = 0, .role = StepRole::kPrompt},
                                       [&](int, std::span<const float> values) -> Status {
                                         all.insert(all.end(), values.begin(), values.end());
                                         return {};
                                       },
                                       {});
    EXPECT_TRUE(done.ok());
    return all;
  };
  const std::vector<float> whole = logits({});
  EXPECT_EQ(logits({300}), whole);
  EXPECT_EQ(logits({100, 1, 55, 143, 1}), whole);
}

TEST(Pinned, ACacheFileOfFastRowsIsRefused) {
  const TempFolder folder;
  const std::string file = folder.path() + "/rows.cache";
  const Engine fast = open_with(Numerics::kFast), pinned = open_with(Numerics::kPinned);
  Session session = session_or_die(fast);
  run(session, some_ids(300), greedy(5));
  ASSERT_TRUE(session.save(file).ok());
  Session other = session_or_die(pinned);
  const auto loaded = other.load(file);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("pinned"), std::string::npos) << loaded.error().message;
}

TEST(Pinned, ACacheFileGoesOnLikeTheSession) {
  const TempFolder folder;
  const std::string file = folder.path() + "/rows.cache";
  const Engine engine = open_with(Numerics::kPinned);
  Session saved = session_or_die(engine), loaded = session_or_die(engine), cold = session_or_die(engine);
  const GenerateResult first = run(saved, some_ids(300), greedy(30));
  ASSERT_TRUE(saved.save(file).ok());
  ASSERT_TRUE(loaded.load(file).ok());
  const std::vector<std::int32_t> prompt = next_prompt(first, 9);
  const GenerateResult second = run(loaded, prompt, greedy(9));
  EXPECT_EQ(second.cached_tokens, kStep);
  EXPECT_EQ(second.ids, run(cold, prompt, greedy(9)).ids);
  EXPECT_EQ(cached_bits(loaded), cached_bits(cold));
}

}  // namespace
}  // namespace latte::test
