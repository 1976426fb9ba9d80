// Penalties, bias, stop texts and log probabilities through the public interface: what a session gives and holds is the
// same with and without speculation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "family_engine.h"
#include "support/never.h"
#include "support/test_model.h"

namespace latte::test {
namespace {

void expect_same_logprobs(const std::vector<TokenLogprobs>& given, const std::vector<TokenLogprobs>& expected) {
  const auto same = [](const TokenLogprob& a, const TokenLogprob& b) {
    return a.id == b.id && a.token == b.token && a.logprob == b.logprob;
  };
  ASSERT_EQ(given.size(), expected.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    EXPECT_TRUE(same(given[i].chosen, expected[i].chosen)) << "token " << i;
    ASSERT_EQ(given[i].top.size(), expected[i].top.size());
    for (std::size_t j = 0; j < given[i].top.size(); ++j)
      EXPECT_TRUE(same(given[i].top[j], expected[i].top[j])) << "token " << i << ", place " << j;
  }
}

void expect_same(const GenerateResult& given, const GenerateResult& expected) {
  EXPECT_EQ(given.ids, expected.ids);
  EXPECT_EQ(given.text, expected.text);
  EXPECT_EQ(given.finish_reason, expected.finish_reason);
  expect_same_logprobs(given.logprobs, expected.logprobs);
}

class SamplingTest : public ::testing::Test {
 protected:
  Engine engine_ = open_or_die(family_options());
  std::vector<std::int32_t> prompt_ = some_ids(9);
};

TEST_F(SamplingTest, ErrorsNameOptionValueAndRange) {
  Session session = session_or_die(engine_);
  struct Case {
    void (*breaks)(RunOptions&);
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases = {
      {[](RunOptions& run) { run.sampling->repeat_penalty = 0; }, {"repeat-penalty 0:", "0.01 to 100"}},
      {[](RunOptions& run) { run.sampling->repeat_last_n = -2; }, {"repeat-last-n -2:", "-1 for all"}},
      {[](RunOptions& run) { run.sampling->presence_penalty = 200; }, {"presence-penalty 200:", "-100 to 100"}},
      {[](RunOptions& run) { run.sampling->frequency_penalty = -200; }, {"frequency-penalty -200:", "-100 to 100"}},
      {[](RunOptions& run) {
         run.logit_bias = {{272, 1}};
       },
       {"logit-bias of id 272:", "0 to 271"}},
      {[](RunOptions& run) {
         run.logit_bias = {{5, -kNever}};
       },
       {"logit-bias inf of id 5:", "-inf to forbid"}},
      {[](RunOptions& run) { run.logprobs = 21; }, {"logprobs 21:", "0 to 20"}},
      {[](RunOptions& run) { run.logprobs = -1; }, {"logprobs -1:", "0 to 20"}},
  };
  for (const Case& broken : cases) {
    RunOptions options = greedy(4);
    broken.breaks(options);
    const Result<GenerateResult> refused = session.generate(prompt_, options);
    ASSERT_FALSE(refused.ok()) << broken.parts[0];
    EXPECT_EQ(refused.error().kind, ErrorKind::kInvalidInput);
    for (const std::string& part : broken.parts)
      EXPECT_NE(refused.error().message.find(part), std::string::npos) << refused.error().message;
  }
}

TEST_F(SamplingTest, ForbiddenTokensNeverComeAndFavouredOnesDo) {
  Session session = session_or_die(engine_, SpecType::kMtp, 3);
  const GenerateResult free = run(session, prompt_, greedy(30));
  RunOptions options = greedy(30);
  for (const std::int32_t id : std::set<std::int32_t>(free.ids.begin(), free.ids.end()))
    options.logit_bias.push_back({id, kNever});
  const GenerateResult other = run(session, prompt_, options);
  for (const std::int32_t id : other.ids) EXPECT_EQ(std::count(free.ids.begin(), free.ids.end(), id), 0) << id;
  options.logit_bias = {{77, 1e4}};
  EXPECT_EQ(run(session, prompt_, options).ids, std::vector<std::int32_t>(30, 77));
}

TEST_F(SamplingTest, IgnoredStopTokensStayPossibleAndStopOtherwise) {
  Session session = session_or_die(engine_, SpecType::kMtp, 2);
  ASSERT_FALSE(engine_.info().stop_ids.empty());
  const std::int32_t stop = engine_.info().stop_ids.front();
  RunOptions options = greedy(6);
  options.logit_bias = {{stop, 1e4}};
  EXPECT_EQ(run(session, prompt_, options).ids, std::vector<std::int32_t>(6, stop));
  options.ignore_eos = false;
  const GenerateResult stopped = run(session, prompt_, options);
  EXPECT_EQ(stopped.ids, std::vector<std::int32_t>(1, stop));
  EXPECT_EQ(stopped.finish_reason, "stop");
}

TEST_F(SamplingTest, LogprobsAreOfTheUnmodifiedDistribution) {
  for (const SpecType spec : {SpecType::kNone, SpecType::kMtp}) {
    Session session = session_or_die(engine_, spec);
    RunOptions options = sampled(12, 3);
    options.sampling->repeat_penalty = 1.3;
    options.logit_bias = {{9, 3}};
    options.logprobs = 5;
    const GenerateResult result = run(session, prompt_, options);
    ASSERT_EQ(result.logprobs.size(), result.ids.size());

    std::vector<std::int32_t> all = prompt_;
    all.insert(all.end(), result.ids.begin(), result.ids.end());
    std::vector<std::vector<float>> rows;
    Session oracle = session_or_die(engine_);
    std::vector<int> steps(all.size() - prompt_.size() + 1, 1);
    steps.front() = static_cast<int>(prompt_.size());
    ASSERT_TRUE(oracle
                    .logits(all, {.steps = steps, .redo = 0, .role = StepRole::kAuto},
                            [&](int, std::span<const float> values) -> Status {
                              for (std::size_t at = 0; at < values.size(); at += 272)
                                rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(at),
                                                  values.begin() + static_cast<std::ptrdiff_t>(at + 272));
                              return {};
                            })
                    .ok());
    for (std::size_t i = 0; i < result.ids.size(); ++i) {
      const std::vector<float>& row = rows[prompt_.size() - 1 + i];
      double sum = 0;
      for (const float logit : row) sum += std::exp(static_cast<double>(logit));
      const auto logprob_of = [&](std::int32_t id) { return row[static_cast<std::size_t>(id)] - std::log(sum); };
      EXPECT_EQ(result.logprobs[i].chosen.id, result.ids[i]);
      EXPECT_NEAR(result.logprobs[i].chosen.logprob, logprob_of(result.ids[i]), 1e-9) << "token " << i;
      ASSERT_EQ(result.logprobs[i].top.size(), 5U);
      const auto best = std::max_element(row.begin(), row.end()) - row.begin();
      EXPECT_EQ(result.logprobs[i].top[0].id, best);
      for (const TokenLogprob& one : result.logprobs[i].top) EXPECT_NEAR(one.logprob, logprob_of(one.id), 1e-9);
    }
  }
}

TEST_F(SamplingTest, EventsBringLogprobsOnlyWhenAskedFor) {
  Session session = session_or_die(engine_, SpecType::kMtp, 3);
  for (const std::optional<int> asked : {std::optional<int>(), std::optional<int>(0), std::optional<int>(2)}) {
    RunOptions options = greedy(10);
    options.logprobs = asked;
    const Result<GenerateResult> result = session.generate(prompt_, options, [&](const TokenEvent& event) {
      EXPECT_EQ(event.logprobs != nullptr, asked.has_value());
      if (event.logprobs == nullptr) return true;
      EXPECT_EQ(event.logprobs->chosen.id, event.id);
      EXPECT_EQ(event.logprobs->top.size(), static_cast<std::size_t>(*asked));
      return true;
    });
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->logprobs.size(), asked.has_value() ? 10U : 0U);
  }
}

RunOptions random_run(std::mt19937& random, int vocab) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  RunOptions options = below(2) == 0 ? greedy(40) : sampled(40, random());
  SamplingChoice& sampling = *options.sampling;
  if (below(3) > 0) sampling.repeat_penalty = 1 + 0.3 * below(4);
  sampling.repeat_last_n = std::vector<int>{64, -1, 8, 1}[static_cast<std::size_t>(below(4))];
  if (below(2) == 0) sampling.presence_penalty = 0.25 * below(8) - 0.5;
  if (below(2) == 0) sampling.frequency_penalty = 0.25 * below(4);
  for (int i = below(4); i > 0; --i) options.logit_bias.push_back({below(vocab), below(2) == 0 ? kNever : 1.5});
  options.ignore_eos = below(2) == 0;
  if (below(2) == 0) options.logprobs = below(4);
  return options;
}

TEST_F(SamplingTest, CombinationsAreEqualWithAndWithoutSpeculation) {
  std::mt19937 random(21);
  for (int i = 0; i < 24; ++i) {
    const RunOptions options = random_run(random, 272);
    Session plain = session_or_die(engine_, SpecType::kNone);
    const GenerateResult expected = run(plain, prompt_, options);
    for (const int depth : {1, 2, 5, 8}) {
      Session mtp = session_or_die(engine_, SpecType::kMtp, depth);
      expect_same(run(mtp, prompt_, options), expected);
    }
    Session lookup = session_or_die(engine_, SpecType::kLookup);
    expect_same(run(lookup, prompt_, options), expected);
    if (HasFailure()) FAIL() << "combination " << i;
  }
}

/// The trained checkpoint with its tokenizer and a draft model.
class TinySamplingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto target = model_folder("latte-tiny");
    const auto draft = model_folder("latte-tiny-draft");
    if (!target.has_value() || !draft.has_value()) GTEST_SKIP() << "latte-tiny is not unpacked (./quickstart does it)";
    EngineOptions options;
    options.model = *target;
    options.draft_model = *draft;
    options.threads = 1;
    engine_.emplace(open_or_die(options));
    prompt_ = engine_->text()->encode("The harbour at dawn", {.match_special = false, .add_bos = true}).value();
  }

  Session arm(int which) const {
    constexpr std::pair<SpecType, int> kArms[] = {
        {SpecType::kNone, 0}, {SpecType::kMtp, 1}, {SpecType::kMtp, 4}, {SpecType::kDraft, 5}, {SpecType::kLookup, 8}};
    return session_or_die(*engine_, kArms[which].first, kArms[which].second);
  }
  static constexpr int kArmCount = 5;

  std::optional<Engine> engine_;
  std::vector<std::int32_t> prompt_;
};

TEST_F(TinySamplingTest, CombinationsAreEqualWithAndWithoutSpeculation) {
  std::mt19937 random(5);
  std::int64_t accepted = 0, rejected = 0;
  for (int i = 0; i < 8; ++i) {
    RunOptions options = random_run(random, engine_->info().vocab);
    options.max_tokens = 32;
    if (i % 2 == 1) {
      Session free = arm(0);
      const std::string text = run(free, prompt_, options).text;
      if (text.size() > 60) options.stop = {text.substr(text.size() / 2, 7)};
    }
    Session plain = arm(0);  // prompts are cut into the same steps in every arm
    const GenerateResult expected = run(plain, prompt_, options);
    for (int which = 1; which < kArmCount; ++which) {
      Session session = arm(which);
      const GenerateResult given = run(session, prompt_, options);
      expect_same(given, expected);
      accepted += given.accepted;
      rejected += given.drafted - given.accepted;
      EXPECT_TRUE(std::ranges::equal(session.tokens(), plain.tokens()));
    }
    if (HasFailure()) FAIL() << "combination " << i;
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(rejected, 50);
}

TEST_F(TinySamplingTest, AfterAStopTextTheSessionIsThatOfPlainDecoding) {
  Session first = arm(0);
  const std::string whole = run(first, prompt_, greedy(32)).text;
  ASSERT_GT(whole.size(), 60U);
  for (const std::size_t at : {20U, 33U, 47U}) {
    RunOptions options = greedy(32);
    options.stop = {whole.substr(at, 9)};
    RunOptions next = sampled(12, 4);
    next.sampling->repeat_penalty = 1.2;
    next.logprobs = 1;
    Session plain = arm(0);
    const GenerateResult expected = run(plain, prompt_, options);
    EXPECT_EQ(expected.text, whole.substr(0, whole.find(options.stop[0])));
    EXPECT_EQ(expected.finish_reason, "stop");
    const std::vector<std::int32_t> held(plain.tokens().begin(), plain.tokens().end());
    std::vector<std::int32_t> turn = prompt_;
    turn.insert(turn.end(), expected.ids.begin(), expected.ids.end());
    turn.insert(turn.end(), {310, 311, 312});
    const GenerateResult expected_next = run(plain, turn, next);
    for (int which = 1; which < kArmCount; ++which) {
      Session session = arm(which);
      expect_same(run(session, prompt_, options), expected);
      EXPECT_EQ(std::vector<std::int32_t>(session.tokens().begin(), session.tokens().end()), held) << "arm " << which;
      const GenerateResult given = run(session, turn, next);
      expect_same(given, expected_next);
      EXPECT_EQ(given.cached_tokens, expected_next.cached_tokens) << "arm " << which;
    }
  }
}

TEST_F(TinySamplingTest, AStopTextThatNamesASpecialTokenStopsAtIt) {
  RunOptions options = greedy(12);
  options.logit_bias = {{0, 1e4}};
  Session session = arm(1);
  EXPECT_EQ(run(session, prompt_, options).ids.size(), 12U);
  options.stop = {"<|begin_of_sentence|>"};
  const GenerateResult stopped = run(session, prompt_, options);
  EXPECT_EQ(stopped.ids, std::vector<std::int32_t>{0});
  EXPECT_EQ(stopped.text, "");
  EXPECT_EQ(stopped.finish_reason, "stop");
}

TEST_F(TinySamplingTest, LogprobsNameTheTokens) {
  RunOptions options = greedy(16);
  options.logprobs = 3;
  Session session = arm(2);
  const GenerateResult result = run(session, prompt_, options);
  std::string bytes;
  for (const TokenLogprobs& token : result.logprobs) {
    bytes += token.chosen.token;
    EXPECT_EQ(token.top[0].id, token.chosen.id) << "greedy takes the likeliest";
    EXPECT_GE(token.top[0].logprob, token.top[1].logprob);
    EXPECT_LT(token.top[0].logprob, 0);
  }
  EXPECT_EQ(bytes, result.text);
}

}  // namespace
}  // namespace latte::test
