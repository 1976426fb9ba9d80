// Bias, penalties, stop texts and log probabilities act position by position inside a speculative block: every
// combination gives what plain decoding gives, computed here by definition, with every drafter and depth.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "decode/decode_rig.h"
#include "decode/stop_strings.h"
#include "support/never.h"

namespace latte {
namespace {

using test::DecodeRig;
using test::DrafterKind;
using test::kAllDrafters;
using test::kNever;
using test::toy_prompt;
using test::ToyModel;

constexpr DrafterKind kRealDrafters[] = {DrafterKind::kLookup, DrafterKind::kDraftModel, DrafterKind::kMtp};

/// A token's text: none to three letters of a small alphabet, so that stop texts begin and end inside tokens.
std::string piece_of(TokenId token) {
  std::string piece;
  for (int i = 0; i < token % 4; ++i) piece += static_cast<char>('a' + (token / 2 + i * 5) % 3);
  return piece;
}

/// What one run is asked for.
struct Control {
  SamplingOptions sampling = {};
  LogitRules rules = {};
  std::vector<TokenId> stop_ids = {};
  std::vector<std::string> stops = {};
  int max_tokens = 40;
};

/// What it gives.
struct Told {
  std::vector<TokenId> tokens;  // prompt and text
  std::string text;
  FinishReason finish = FinishReason::kLength;
  std::vector<std::vector<float>> rows;  // the logits that chose each token
};

/// Bias and penalties as their definitions read, one token of the vocabulary after the other.
std::vector<float> changed_by_definition(const LogitRules& rules, const std::vector<TokenId>& tokens,
                                         std::size_t prompt, std::vector<float> logits) {
  const std::size_t window = rules.repeat_last_n < 0 ? tokens.size() : static_cast<std::size_t>(rules.repeat_last_n);
  const auto recent = tokens.end() - static_cast<std::ptrdiff_t>(std::min(window, tokens.size()));
  const auto generated = tokens.begin() + static_cast<std::ptrdiff_t>(prompt);
  for (std::size_t id = 0; id < logits.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    float& logit = logits[id];
    for (const LogitBias& bias : rules.bias)
      if (bias.id == token) logit = static_cast<float>(logit + bias.bias);
    if (std::find(recent, tokens.end(), token) != tokens.end() && rules.repeat_penalty != 1)
      logit = static_cast<float>(logit > 0 ? logit / rules.repeat_penalty : logit * rules.repeat_penalty);
    if (const auto times = std::count(generated, tokens.end(), token); times > 0) {
      const double frequency = static_cast<double>(times) * rules.frequency_penalty;
      logit = static_cast<float>(logit - rules.presence_penalty - frequency);
    }
  }
  return logits;
}

/// Plain decoding without the loop.
Told plainly(const ToyModel& model, const Control& control, const std::vector<TokenId>& prompt, int context) {
  const Sampler sampler(control.sampling, model.vocab);
  Told told{.tokens = prompt, .text = "", .finish = FinishReason::kLength, .rows = {}};
  const int most = std::min(control.max_tokens, context - static_cast<int>(prompt.size()) + 1);
  for (int i = 0; i < most; ++i) {
    told.rows.push_back(model.logits(told.tokens));
    const std::vector<float> logits =
        changed_by_definition(control.rules, told.tokens, prompt.size(), told.rows.back());
    told.tokens.push_back(sampler.choose(logits, static_cast<std::int64_t>(told.tokens.size())));
    told.text += piece_of(told.tokens.back());
    std::size_t cut = std::string::npos;
    for (const std::string& stop : control.stops) cut = std::min(cut, told.text.find(stop));
    const bool stop_id = std::count(control.stop_ids.begin(), control.stop_ids.end(), told.tokens.back()) > 0;
    if (cut != std::string::npos) told.text.resize(cut);
    if (stop_id || (cut != std::string::npos && i + 1 < control.max_tokens)) told.finish = FinishReason::kStop;
    if (stop_id || cut != std::string::npos) break;
  }
  return told;
}

/// How often the runs met what they are for.
struct Met {
  std::int64_t accepted = 0, rejected = 0;
  int rules_mattered = 0;
  int stops_inside_a_block = 0;          // with rows behind the stop
  int stops_over_tokens_of_a_block = 0;  // begun in an earlier token of the same block
};

/// The same through the loop, on a rig that may have run before.
Told through(DecodeRig& rig, const Control& control, const std::vector<TokenId>& prompt, int depth, Met& met) {
  Told told{.tokens = prompt, .text = "", .finish = FinishReason::kLength, .rows = {}};
  StopStrings watch(control.stops);
  std::size_t steps = rig.target.steps.size();
  std::size_t in_block = 0;
  std::string block_text;
  const auto take = [&](const Emission& emission) {
    told.rows.emplace_back(emission.logits.begin(), emission.logits.end());
    if (rig.target.steps.size() != steps) {
      steps = rig.target.steps.size();
      in_block = 0;
      block_text.clear();
    }
    ++in_block;
    block_text += piece_of(emission.token);
    const StopStrings::Piece piece = watch.push(piece_of(emission.token));
    told.text += piece.text;
    if (!piece.stopped) return Proceed::kGoOn;
    const std::size_t last_piece = piece_of(emission.token).size();
    met.stops_inside_a_block += in_block < static_cast<std::size_t>(rig.target.steps.back().rows);
    for (const std::string& stop : control.stops) {
      const std::size_t at = block_text.find(stop);
      met.stops_over_tokens_of_a_block += at != std::string::npos && at < block_text.size() - last_piece;
    }
    return Proceed::kStop;
  };
  const Generation done =
      rig.run(told.tokens, {.max_tokens = control.max_tokens, .depth = depth, .stop_ids = control.stop_ids}, take);
  told.text += watch.flush();
  told.finish = done.finish_reason;
  met.accepted += done.stats.accepted;
  met.rejected += done.stats.drafted - done.stats.accepted;
  return told;
}

void expect_equal(const Told& given, const Told& expected, const std::string& what) {
  ASSERT_EQ(given.tokens, expected.tokens) << what;
  ASSERT_EQ(given.text, expected.text) << what;
  ASSERT_EQ(given.finish, expected.finish) << what;
  ASSERT_EQ(given.rows, expected.rows) << what;
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + below(static_cast<int>(values.size())));
  }

 private:
  std::mt19937 random_;
};

LogitRules random_rules(Dice& dice, int vocab) {
  LogitRules rules;
  if (dice.below(2) == 0) rules.repeat_penalty = dice.one_of({1.1, 1.5, 3.0, 0.7});
  rules.repeat_last_n = dice.one_of({64, 0, 1, 2, 3, 7, 20, -1});
  if (dice.below(3) == 0) rules.presence_penalty = dice.one_of({0.3, 1.0, 2.0, -0.5});
  if (dice.below(3) == 0) rules.frequency_penalty = dice.one_of({0.1, 0.4, 2.0, -0.2});
  for (int i = dice.below(4) - 1; i > 0; --i)
    rules.bias.push_back({dice.below(vocab), dice.one_of({kNever, -1.0, 0.5, 2.0, kNever})});
  return rules;
}

Control random_control(Dice& dice, int vocab) {
  Control control;
  if (dice.below(2) == 0)
    control.sampling = {.temperature = dice.one_of({0.5, 1.0, 1.7}),
                        .top_k = dice.one_of({0, 0, 5}),
                        .top_p = dice.one_of({1.0, 0.9}),
                        .min_p = dice.one_of({0.0, 0.05}),
                        .seed = static_cast<std::uint64_t>(dice.below(1 << 20))};
  control.rules = random_rules(dice, vocab);
  if (dice.below(3) == 0) control.stop_ids.push_back(dice.below(vocab));
  for (int i = dice.below(3); i > 0; --i) {
    std::string stop;
    for (int letters = dice.one_of({2, 4, 5, 6, 7}); letters > 0; --letters)
      stop += static_cast<char>('a' + dice.below(3));
    control.stops.push_back(stop);
  }
  control.max_tokens = dice.one_of({1, 2, 9, 30, 45});
  return control;
}

/// One combination: every drafter at two depths, two turns over the same caches.
void try_combination(unsigned seed, Met& met) {
  Dice dice(seed);
  const ToyModel model{.vocab = 12, .salt = seed, .spread = dice.one_of({1.0F, 2.0F, 4.0F})};
  const Control control = random_control(dice, model.vocab);
  const std::vector<TokenId> prompt = toy_prompt(1 + dice.below(30), model.vocab);
  const std::vector<TokenId> turn = toy_prompt(1 + dice.below(5), model.vocab);
  const int context = dice.one_of({4096, 60});
  const Told expected = plainly(model, control, prompt, context);
  std::vector<TokenId> second = expected.tokens;
  second.insert(second.end(), turn.begin(), turn.end());
  const bool has_room = static_cast<int>(second.size()) <= context;
  const Told expected_second = has_room ? plainly(model, control, second, context) : Told{};
  Control free = control;
  free.rules = {};
  met.rules_mattered += plainly(model, free, prompt, context).tokens != expected.tokens;

  for (const DrafterKind kind : kAllDrafters) {
    for (const int depth : {1 + dice.below(3), 4 + dice.below(8)}) {
      const std::string what = "combination " + std::to_string(seed) + ", drafter " +
                               std::to_string(static_cast<int>(kind)) + ", depth " + std::to_string(depth);
      DecodeRig rig({.model = model,
                     .kind = kind,
                     .sampling = control.sampling,
                     .rules = control.rules,
                     .drafter_noise = dice.one_of({0.0F, 0.3F, 2.0F}),
                     .context = context});
      expect_equal(through(rig, control, prompt, depth, met), expected, what);
      if (::testing::Test::HasFatalFailure()) return;
      if (has_room) expect_equal(through(rig, control, second, depth, met), expected_second, what + ", second turn");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(SamplingControl, RandomCombinationsGiveThePlainTextWithEveryDrafterAndDepth) {
  Met met;
  for (unsigned seed = 1; seed <= 600 && !HasFatalFailure(); ++seed) try_combination(seed, met);
  EXPECT_GT(met.accepted, 10000);
  EXPECT_GT(met.rejected, 10000);
  EXPECT_GT(met.rules_mattered, 200);
  EXPECT_GT(met.stops_inside_a_block, 100);
  EXPECT_GT(met.stops_over_tokens_of_a_block, 50);
}

/// Runs `control` with every drafter at every depth of 0 to 8.
void expect_plain_text(const Control& control, const ToyModel& model = {.vocab = 12, .spread = 2}) {
  const std::vector<TokenId> prompt = toy_prompt(9, model.vocab);
  const Told expected = plainly(model, control, prompt, 4096);
  for (const DrafterKind kind : kRealDrafters) {
    for (const float noise : {0.0F, 1.0F}) {
      for (int depth = 0; depth <= 8; ++depth) {
        DecodeRig rig({.model = model,
                       .kind = kind,
                       .sampling = control.sampling,
                       .rules = control.rules,
                       .drafter_noise = noise});
        Met met;
        expect_equal(through(rig, control, prompt, depth, met), expected, "depth " + std::to_string(depth));
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(SamplingControl, RejectedDraftsAreTakenBackFromTheCounts) {
  expect_plain_text({.rules = {.frequency_penalty = 0.3}, .max_tokens = 80});
  expect_plain_text({.sampling = {.temperature = 1, .seed = 4}, .rules = {.presence_penalty = 0.7}, .max_tokens = 80});
}

TEST(SamplingControl, TheWindowMovesWithEveryRowOfABlock) {
  for (const int last_n : {1, 2, 5, 12})
    expect_plain_text({.rules = {.repeat_penalty = 2, .repeat_last_n = last_n}, .max_tokens = 80});
}

TEST(SamplingControl, BiasActsOnEveryRowOfABlock) {
  const ToyModel model{.vocab = 12, .spread = 2};
  const Control free{.max_tokens = 60};
  std::vector<TokenId> usual = plainly(model, free, toy_prompt(9, 12), 4096).tokens;
  for (const std::size_t at : {20U, 30U, 40U}) {
    const Control banned{.rules = {.bias = {{usual[at], kNever}}}, .max_tokens = 60};
    const std::vector<TokenId> text = plainly(model, banned, toy_prompt(9, 12), 4096).tokens;
    EXPECT_EQ(std::count(text.begin() + 9, text.end(), usual[at]), 0);
    expect_plain_text(banned);
  }
}

TEST(SamplingControl, AStopTextOverSeveralTokensOfABlockDropsWhatFollows) {
  const ToyModel model{.vocab = 12, .spread = 2};
  const std::vector<TokenId> prompt = toy_prompt(9, 12);
  const std::string whole = plainly(model, {.max_tokens = 60}, prompt, 4096).text;
  ASSERT_GT(whole.size(), 40U);
  for (std::size_t at = 0; at + 5 <= whole.size(); ++at) {
    const Control control{.stops = {whole.substr(at, 5)}, .max_tokens = 60};
    expect_plain_text(control);
    if (HasFatalFailure()) return;
  }
}

TEST(SamplingControl, DraftersChooseByTheSameRules) {
  const Control control{
      .sampling = {.temperature = 0.8, .seed = 2},
      .rules = {.bias = {{3, 1.5}, {4, kNever}}, .repeat_penalty = 1.6, .repeat_last_n = 6, .frequency_penalty = 0.5}};
  for (const DrafterKind kind : {DrafterKind::kDraftModel, DrafterKind::kMtp}) {
    DecodeRig rig({.kind = kind, .sampling = control.sampling, .rules = control.rules, .drafter_noise = 0});
    std::vector<TokenId> tokens = toy_prompt(30);
    const Generation done = rig.run(tokens, {.max_tokens = 101, .depth = 4});
    EXPECT_EQ(done.stats.accepted, done.stats.drafted) << "a drafter that agrees with the target is never wrong";
    EXPECT_EQ(done.stats.rounds, 20);
  }
}

TEST(SamplingControl, IdleRulesChooseAsTheSamplerDoes) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(9);
  const Sampler sampler({.temperature = 1, .seed = 9}, model.vocab);
  const LogitRules idle{.repeat_last_n = -1};
  TokenChooser chooser(sampler, idle, prompt);
  std::vector<TokenId> tokens = prompt;
  for (int i = 0; i < 20; ++i) {
    const std::vector<float> logits = model.logits(tokens);
    const TokenId token = chooser.choose(logits);
    EXPECT_EQ(token, sampler.choose(logits, static_cast<std::int64_t>(tokens.size())));
    tokens.push_back(token);
    chooser.push(token);
  }
}

}  // namespace
}  // namespace latte
