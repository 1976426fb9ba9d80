#include "decode/speculative_loop.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "decode/decode_rig.h"

namespace latte {
namespace {

using test::DecodeRig;
using test::DrafterKind;
using test::kAllDrafters;
using test::plain_text;
using test::toy_prompt;
using test::ToyModel;

const std::vector<SamplingOptions> kGreedyAndSampled = {
    {}, {.temperature = 1, .seed = 5}, {.temperature = 0.7, .top_k = 20, .top_p = 0.9, .seed = 8}};

TEST(SpeculativeLoop, SameTextAtEveryDepthWithEveryDrafter) {
  for (const SamplingOptions& sampling : kGreedyAndSampled) {
    for (const float spread : {1.0F, 4.0F}) {
      const ToyModel model{.vocab = 12, .spread = spread};
      const std::vector<TokenId> prompt = toy_prompt(23, 12);
      const std::vector<TokenId> expected = plain_text(model, Sampler(sampling, 12), prompt, 150);
      for (const DrafterKind kind : kAllDrafters) {
        for (int depth = 0; depth <= 8; ++depth) {
          DecodeRig rig({.model = model, .kind = kind, .sampling = sampling, .drafter_noise = spread / 3});
          std::vector<TokenId> tokens = prompt;
          const Generation done = rig.run(tokens, {.max_tokens = 150, .depth = depth});
          ASSERT_EQ(tokens, expected) << "drafter " << static_cast<int>(kind) << " depth " << depth;
          EXPECT_EQ(done.finish_reason, FinishReason::kLength);
          if (depth == 0 || kind == DrafterKind::kNone) {
            EXPECT_EQ(done.stats.rounds, 149);
          } else {
            // A run counts only with drafts, a rejection and a full acceptance in it.
            EXPECT_GT(done.stats.accepted, 0) << "drafter " << static_cast<int>(kind) << " depth " << depth;
            EXPECT_LT(done.stats.rounds, 149);
            if (kind != DrafterKind::kLookup) {
              EXPECT_LT(done.stats.accepted, done.stats.drafted);
            }
          }
        }
      }
    }
  }
}

TEST(SpeculativeLoop, AControllersDepthsChangeNoText) {
  for (const SamplingOptions& sampling : kGreedyAndSampled) {
    const ToyModel model{.vocab = 12, .spread = 4};
    const std::vector<TokenId> prompt = toy_prompt(23, 12);
    const std::vector<TokenId> expected = plain_text(model, Sampler(sampling, 12), prompt, 400);
    for (const DrafterKind kind : kAllDrafters) {
      if (kind == DrafterKind::kNone) continue;
      DecodeRig rig({.model = model, .kind = kind, .sampling = sampling, .drafter_noise = 1});
      std::vector<TokenId> tokens = prompt;
      DepthController control(5);
      const Generation done = rig.run(tokens, {.max_tokens = 400, .depth = 5, .control = &control});
      ASSERT_EQ(tokens, expected) << "drafter " << static_cast<int>(kind);
      EXPECT_EQ(done.stats.depth, 5);
      EXPECT_GE(done.stats.rounds_per_depth[0], 2);
      std::int64_t rounds = 0;
      for (const std::int64_t count : done.stats.rounds_per_depth) rounds += count;
      EXPECT_EQ(rounds, done.stats.rounds);
      EXPECT_NEAR(control.seconds_in_all(), done.stats.seconds_of_rounds(), 1e-9) << "every round is told";
    }
  }
}

TEST(SpeculativeLoop, StopInsideAnAcceptedRunTrimsWhatFollows) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(9);
  for (const SamplingOptions& sampling : kGreedyAndSampled) {
    const std::vector<TokenId> free = plain_text(model, Sampler(sampling, 50), prompt, 12);
    for (std::size_t at = prompt.size(); at < free.size(); ++at) {
      const TokenId stop = free[at];
      const std::vector<TokenId> expected = plain_text(model, Sampler(sampling, 50), prompt, 12, {&stop, 1});
      for (const DrafterKind kind : kAllDrafters) {
        for (int depth = 0; depth <= 6; ++depth) {
          DecodeRig rig({.model = model, .kind = kind, .sampling = sampling, .drafter_noise = 0});
          std::vector<TokenId> tokens = prompt;
          const Generation done = rig.run(tokens, {.max_tokens = 12, .depth = depth, .stop_ids = {&stop, 1}});
          ASSERT_EQ(tokens, expected);
          EXPECT_EQ(done.finish_reason, FinishReason::kStop);
        }
      }
    }
  }
}

TEST(SpeculativeLoop, MaxTokensIsExactAtEveryRemainder) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(9);
  const std::vector<TokenId> free = plain_text(model, Sampler({}, 50), prompt, 20);
  for (const DrafterKind kind : kAllDrafters) {
    for (int depth = 0; depth <= 5; ++depth) {
      for (int limit = 1; limit <= 14; ++limit) {
        DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0});
        std::vector<TokenId> tokens = prompt;
        const Generation done = rig.run(tokens, {.max_tokens = limit, .depth = depth});
        ASSERT_EQ(tokens, std::vector<TokenId>(free.begin(), free.begin() + 9 + limit));
        EXPECT_EQ(done.finish_reason, FinishReason::kLength);
        EXPECT_EQ(done.stats.generated_tokens, limit);
      }
    }
  }
}

TEST(SpeculativeLoop, MaxTokensZeroFeedsNothing) {
  DecodeRig rig({.kind = DrafterKind::kMtp});
  std::vector<TokenId> tokens = toy_prompt(5);
  const Result<Generation> done = rig.try_run(tokens, {.max_tokens = 0});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->finish_reason, FinishReason::kLength);
  EXPECT_EQ(tokens.size(), 5U);
  EXPECT_TRUE(rig.target.steps.empty());
}

TEST(SpeculativeLoop, ContextEndStopsAtTheExactToken) {
  const ToyModel model;
  const int context = 40;
  for (const DrafterKind kind : kAllDrafters) {
    for (int depth = 0; depth <= 8; ++depth) {
      for (int prompt_rows = context - depth - 2; prompt_rows <= context; ++prompt_rows) {
        const std::vector<TokenId> prompt = toy_prompt(prompt_rows);
        DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0, .context = context, .draft_context = context});
        std::vector<TokenId> tokens = prompt;
        const Generation done = rig.run(tokens, {.depth = depth});
        ASSERT_EQ(tokens, plain_text(model, Sampler({}, 50), prompt, context - prompt_rows + 1));
        EXPECT_EQ(done.finish_reason, FinishReason::kLength);
        EXPECT_EQ(rig.target.length(), context);
      }
    }
  }
}

TEST(SpeculativeLoop, RejectingEverythingForFiftyRoundsEqualsNeverHavingDrafted) {
  const ToyModel model;
  for (const DrafterKind kind : {DrafterKind::kDraftModel, DrafterKind::kMtp}) {
    for (int depth = 1; depth <= 8; ++depth) {
      DecodeRig rig({.model = model, .kind = kind, .contrary_drafter = true});
      std::vector<TokenId> tokens = toy_prompt(20);
      const Generation done = rig.run(tokens, {.max_tokens = 51 + depth, .depth = depth});
      EXPECT_EQ(done.stats.accepted, 0);
      EXPECT_GE(done.stats.rounds, 50);
      EXPECT_GE(done.stats.drafted, 50 * depth);
      ASSERT_EQ(tokens, plain_text(model, Sampler({}, 50), toy_prompt(20), 51 + depth));
      if (kind == DrafterKind::kMtp) {
        EXPECT_GE(rig.mtp.length(), rig.target.length() - 2) << "the last round had no room for a draft";
      }
    }
  }
}

TEST(SpeculativeLoop, VerifyStepsAreOfOneFamilyAndNeverWiderThanItsLimit) {
  DecodeRig rig({.kind = DrafterKind::kDraftModel, .drafter_noise = 0});
  std::vector<TokenId> tokens = toy_prompt(700);
  const Generation done = rig.run(tokens, {.max_tokens = 100, .depth = 40});
  EXPECT_EQ(done.stats.depth, kMaxDrafts);
  ASSERT_EQ(rig.target.steps[0].rows, 512);
  ASSERT_EQ(rig.target.steps[1].rows, 188);
  EXPECT_EQ(rig.target.steps[0].wanted, LogitsWanted::kNone);
  EXPECT_EQ(rig.target.steps[1].wanted, LogitsWanted::kLast);
  for (std::size_t i = 2; i < rig.target.steps.size(); ++i) {
    EXPECT_EQ(rig.target.steps[i].role, Role::kGenerated);
    EXPECT_LE(rig.target.steps[i].rows, kMaxDecodeRows);
  }
  EXPECT_EQ(rig.target.steps[2].rows, kMaxDecodeRows);
}

TEST(SpeculativeLoop, CountersAgreeWithEachOther) {
  for (const float noise : {0.0F, 1.0F, 3.0F}) {
    DecodeRig rig({.kind = DrafterKind::kMtp, .sampling = {.temperature = 1}, .drafter_noise = noise});
    std::vector<TokenId> tokens = toy_prompt(30);
    const DecodeStats stats = rig.run(tokens, {.max_tokens = 300, .depth = 4}).stats;
    EXPECT_EQ(stats.prompt_tokens, 30);
    EXPECT_EQ(stats.cached_tokens, 0);
    EXPECT_EQ(stats.generated_tokens, 300);
    EXPECT_EQ(stats.emitted_in_rounds, 299);
    EXPECT_EQ(stats.emitted_in_rounds, stats.rounds + stats.accepted) << "every round emits one token of the target's";
    EXPECT_EQ(std::accumulate(stats.accepted_per_position.begin(), stats.accepted_per_position.end(), std::int64_t{0}),
              stats.accepted);
    for (int i = 0; i < kMaxDrafts; ++i) {
      EXPECT_LE(stats.accepted_per_position[i], stats.tested_per_position[i]);
      if (i > 0) {
        EXPECT_LE(stats.tested_per_position[i], stats.accepted_per_position[i - 1]);
      }
      if (i >= 4) {
        EXPECT_EQ(stats.tested_per_position[i], 0);
      }
    }
    if (noise == 0) {
      EXPECT_EQ(stats.accepted, stats.drafted);
    }
    EXPECT_GE(stats.unaccounted_seconds(), 0);
  }
}

TEST(SpeculativeLoop, TheTimeOfARunIsThatOfItsParts) {
  double share = 1;
  for (int attempt = 0; attempt < 20 && share > 0.2; ++attempt) {  // the system may stop a run between two parts
    DecodeRig rig({.kind = DrafterKind::kMtp});
    std::vector<TokenId> tokens = toy_prompt(30);
    const DecodeStats stats = rig.run(tokens, {.max_tokens = 300, .depth = 4}).stats;
    share = stats.unaccounted_seconds() / stats.generate_seconds;
  }
  EXPECT_LT(share, 0.2);
}

TEST(DecodeStats, AStopOnADraftTestsNothingBehindIt) {
  DecodeStats stats;
  stats.count_round(3, 3, 4, 4);  // all accepted
  stats.count_round(3, 3, 2, 2);  // one accepted, the second rejected
  stats.count_round(4, 3, 4, 2);  // all would have been; the second draft ended the text
  stats.count_round(0, 0, 1, 1);  // a plain round
  EXPECT_EQ(stats.rounds, 4);
  EXPECT_EQ(stats.rounds_per_depth[3], 2);
  EXPECT_EQ(stats.rounds_per_depth[4], 1);
  EXPECT_EQ(stats.emitted_in_rounds, 9);
  EXPECT_EQ(stats.drafted, 9);
  EXPECT_EQ(stats.accepted, 6);
  EXPECT_EQ(stats.tested_per_position[0], 3);
  EXPECT_EQ(stats.tested_per_position[1], 3);
  EXPECT_EQ(stats.tested_per_position[2], 1);
  EXPECT_EQ(stats.accepted_per_position[0], 3);
  EXPECT_EQ(stats.accepted_per_position[1], 2);
  EXPECT_EQ(stats.accepted_per_position[2], 1);
}

TEST(SpeculativeLoop, TheCallersWordEndsTheTextAtAnyToken) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(9);
  const std::vector<TokenId> free = plain_text(model, Sampler({}, 50), prompt, 20);
  for (const DrafterKind kind : kAllDrafters) {
    for (int depth = 0; depth <= 4; ++depth) {
      for (int at = 1; at <= 12; ++at) {
        for (const Proceed word : {Proceed::kStop, Proceed::kCancel}) {
          DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0});
          std::vector<TokenId> tokens = prompt;
          std::vector<TokenId> heard;
          const Generation done = rig.run(tokens, {.max_tokens = 20, .depth = depth}, [&](const Emission& emission) {
            heard.push_back(emission.token);
            return static_cast<int>(heard.size()) == at ? word : Proceed::kGoOn;
          });
          ASSERT_EQ(tokens, std::vector<TokenId>(free.begin(), free.begin() + 9 + at));
          ASSERT_EQ(heard, std::vector<TokenId>(free.begin() + 9, free.begin() + 9 + at));
          EXPECT_EQ(done.finish_reason, word == Proceed::kStop ? FinishReason::kStop : FinishReason::kCancelled);
        }
      }
    }
  }
}

TEST(SpeculativeLoop, ARunInTwoPartsEqualsOneRun) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(30);
  for (const SamplingOptions& sampling : kGreedyAndSampled) {
    const std::vector<TokenId> expected = plain_text(model, Sampler(sampling, 50), prompt, 40);
    for (const DrafterKind kind : kAllDrafters) {
      for (int first_part = 1; first_part < 12; ++first_part) {
        DecodeRig rig({.model = model, .kind = kind, .sampling = sampling});
        std::vector<TokenId> tokens = prompt;
        rig.run(tokens, {.max_tokens = first_part, .depth = 3});
        const std::size_t steps = rig.target.steps.size();
        const Generation rest = rig.run(tokens, {.max_tokens = 40 - first_part, .depth = 3, .first_generated = 30});
        ASSERT_EQ(tokens, expected);
        EXPECT_EQ(rest.stats.cached_tokens, 30 + first_part - 1);
        EXPECT_EQ(rig.target.steps[steps].role, Role::kGenerated);
        EXPECT_EQ(rig.target.steps[steps].rows, 1);
        if (kind == DrafterKind::kMtp) {
          EXPECT_EQ(static_cast<MtpDrafter&>(*rig.watch.inner).window_start(), 0) << "no row was lost";
        }
      }
    }
  }
}

TEST(SpeculativeLoop, PromptAndEarlierOutputNeverShareAStep) {
  DecodeRig rig({});
  std::vector<TokenId> tokens = toy_prompt(60);
  rig.run(tokens, {.max_tokens = 1, .prompt_step_rows = 25, .first_generated = 40});
  ASSERT_EQ(rig.target.steps.size(), 4U);
  EXPECT_EQ(rig.target.steps[1].rows, 15);
  EXPECT_EQ(rig.target.steps[1].role, Role::kPrompt);
  EXPECT_EQ(rig.target.steps[2].rows, 16);
  EXPECT_EQ(rig.target.steps[2].role, Role::kGenerated);
  EXPECT_EQ(rig.target.steps[3].rows, 4);
}

TEST(SpeculativeLoop, AWarmCacheIsFedOnlyWhatItLacks) {
  for (const DrafterKind kind : kAllDrafters) {
    DecodeRig rig({.kind = kind, .drafter_noise = 0});
    std::vector<TokenId> tokens = toy_prompt(40);
    rig.run(tokens, {.max_tokens = 10, .depth = 3});
    const std::vector<TokenId> turn = toy_prompt(21);
    tokens.insert(tokens.end(), turn.begin(), turn.end());
    const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), tokens, 10);
    const std::size_t steps = rig.target.steps.size();
    const Generation done = rig.run(tokens, {.max_tokens = 10, .depth = 3});
    EXPECT_EQ(tokens, expected);
    EXPECT_EQ(done.stats.cached_tokens, 49);
    EXPECT_EQ(rig.target.steps[steps].rows, 22);
    if (kind == DrafterKind::kMtp || kind == DrafterKind::kDraftModel) {
      EXPECT_EQ(done.stats.accepted, done.stats.drafted) << "the drafter's cache is as warm";
    }
  }
}

TEST(SpeculativeLoop, AnExactPrefixHitKeepsOneTokenToFeed) {
  for (const DrafterKind kind : kAllDrafters) {
    DecodeRig rig({.kind = kind, .drafter_noise = 0});
    std::vector<TokenId> tokens = toy_prompt(40);
    rig.run(tokens, {.max_tokens = 10, .depth = 3});
    for (const int known : {48, 47, 41, 40, 5, 1}) {
      // The cache holds 49 rows or fewer; the same tokens again, cut short, leave nothing new to feed.
      std::vector<TokenId> again(tokens.begin(), tokens.begin() + known);
      const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), again, 10);
      const Generation done = rig.run(again, {.max_tokens = 10, .depth = 3});
      ASSERT_EQ(again, expected);
      EXPECT_EQ(done.stats.cached_tokens, known - 1);
      if (kind == DrafterKind::kMtp || kind == DrafterKind::kDraftModel) {
        EXPECT_EQ(done.stats.accepted, done.stats.drafted);
      }
    }
  }
}

TEST(SpeculativeLoop, AFailedStepLeavesWhatTheNextCallNeeds) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(600);
  const std::vector<TokenId> expected = plain_text(model, Sampler({}, 50), prompt, 30);
  for (const DrafterKind kind : kAllDrafters) {
    for (const bool leaves_rows : {false, true}) {
      for (int at_step = 0; at_step < 8; ++at_step) {
        DecodeRig rig({.model = model, .kind = kind});
        rig.target.failure = {.at_step = at_step, .leaves_rows = leaves_rows};
        std::vector<TokenId> tokens = prompt;
        const Result<Generation> broken = rig.try_run(tokens, {.max_tokens = 30, .depth = 3});
        ASSERT_FALSE(broken.ok());
        EXPECT_EQ(broken.error().message, "planned failure");
        const int emitted = static_cast<int>(tokens.size() - prompt.size());
        if (emitted > 0) {
          rig.check_rows(tokens);
        } else {
          EXPECT_LT(rig.target.length(), 600);
        }
        const Generation done = rig.run(tokens, {.max_tokens = 30 - emitted, .depth = 3, .first_generated = 600});
        ASSERT_EQ(tokens, expected) << "step " << at_step;
        EXPECT_EQ(done.stats.generated_tokens, 30 - emitted);
      }
    }
  }
}

TEST(SpeculativeLoop, AFailedDrafterIsReportedAndRecoversExactly) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(600);
  const std::vector<TokenId> expected = plain_text(model, Sampler({}, 50), prompt, 30);
  for (const DrafterKind kind : {DrafterKind::kDraftModel, DrafterKind::kMtp}) {
    for (const bool leaves_rows : {false, true}) {
      for (int at_step = 0; at_step < 9; ++at_step) {
        DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0});
        rig.draft.failure = rig.mtp.failure = {.at_step = at_step, .leaves_rows = leaves_rows};
        std::vector<TokenId> tokens = prompt;
        const Result<Generation> broken = rig.try_run(tokens, {.max_tokens = 30, .depth = 3});
        ASSERT_FALSE(broken.ok());
        const int emitted = static_cast<int>(tokens.size() - prompt.size());
        if (emitted > 0 && !leaves_rows) rig.check_rows(tokens);
        const Generation done = rig.run(tokens, {.max_tokens = 30 - emitted, .depth = 3, .first_generated = 600});
        ASSERT_EQ(tokens, expected) << "step " << at_step;
        EXPECT_EQ(done.stats.accepted, done.stats.drafted) << "step " << at_step;
      }
    }
  }
}

TEST(SpeculativeLoop, NonFiniteLogitsAreAnErrorAndNeverText) {
  ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(9);
  const std::vector<TokenId> free = plain_text(model, Sampler({}, 50), prompt, 8);
  for (const DrafterKind kind : kAllDrafters) {
    for (const std::size_t at : {8U, 9U, 11U, 13U}) {
      model.nan_after = free[at];
      const std::size_t first =
          static_cast<std::size_t>(std::find(free.begin() + 8, free.end(), model.nan_after) - free.begin());
      DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0});
      std::vector<TokenId> tokens = prompt;
      const Result<Generation> broken = rig.try_run(tokens, {.max_tokens = 8, .depth = 2});
      ASSERT_FALSE(broken.ok());
      EXPECT_EQ(broken.error().kind, ErrorKind::kNumeric);
      EXPECT_EQ(tokens.size(), first + 1) << "as plain decoding: all before the broken row, nothing from it";
      EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), free.begin()));
      EXPECT_EQ(rig.target.length(), static_cast<int>(tokens.size()) - 1);
    }
  }
}

TEST(SpeculativeLoop, ABrokenRowOfADraftIsNeverTheTextsError) {
  ToyModel model{.vocab = 12};
  const std::vector<TokenId> prompt = toy_prompt(9, 12);
  const std::vector<TokenId> free = plain_text(model, Sampler({}, 12), prompt, 24);
  for (TokenId broken = 0; broken < model.vocab; ++broken) {
    model.nan_after = broken;
    // Every token from the prompt's last on is fed, but for the text's last.
    const auto fed = std::find(free.begin() + 8, free.end() - 1, broken);
    const bool succeeds = fed == free.end() - 1;
    const std::vector<TokenId> expected(free.begin(), succeeds ? free.end() : fed + 1);
    for (const DrafterKind kind : kAllDrafters) {
      for (int depth = 0; depth <= 5; ++depth) {
        DecodeRig rig({.model = model, .kind = kind});
        std::vector<TokenId> tokens = prompt;
        ASSERT_TRUE(rig.target.step({prompt.data(), 8}, Role::kPrompt, LogitsWanted::kNone).ok());
        rig.target.refuses_nan = true;
        const Result<Generation> done = rig.try_run(tokens, {.max_tokens = 24, .depth = depth});
        EXPECT_EQ(done.ok(), succeeds) << "broken " << broken << " depth " << depth;
        if (!done.ok()) {
          EXPECT_EQ(done.error().kind, ErrorKind::kNumeric);
        }
        ASSERT_EQ(tokens, expected) << "broken " << broken << " drafter " << static_cast<int>(kind) << " depth "
                                    << depth;
        EXPECT_EQ(rig.target.length(), static_cast<int>(tokens.size()) - 1);
      }
    }
  }
}

TEST(SpeculativeLoop, BrokenNumbersInTheDrafterCostItsGuessesOnly) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(600);
  const std::vector<TokenId> expected = plain_text(model, Sampler({}, 50), prompt, 30);
  for (const DrafterKind kind : {DrafterKind::kDraftModel, DrafterKind::kMtp}) {
    for (const bool leaves_rows : {false, true}) {
      for (int at_step = 0; at_step < 9; ++at_step) {
        DecodeRig rig({.model = model, .kind = kind, .drafter_noise = 0});
        rig.draft.failure =
            rig.mtp.failure = {.at_step = at_step, .leaves_rows = leaves_rows, .kind = ErrorKind::kNumeric};
        std::vector<TokenId> tokens = prompt;
        const Generation done = rig.run(tokens, {.max_tokens = 30, .depth = 3});
        ASSERT_EQ(tokens, expected) << "step " << at_step;
        EXPECT_GT(done.stats.accepted, 0) << "it drafts again afterwards";
      }
    }
  }
}

TEST(SpeculativeLoop, ATargetThatCannotRewindIsEmptiedAndReadAgain) {
  const ToyModel model;
  const std::vector<TokenId> prompt = toy_prompt(30);
  DecodeRig rig({.model = model, .kind = DrafterKind::kMtp, .contrary_drafter = true});
  rig.target.rewind_floor = 1 << 20;
  std::vector<TokenId> tokens = prompt;
  const Result<Generation> refused = rig.try_run(tokens, {.max_tokens = 10, .depth = 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_EQ(rig.target.length(), 0);
  const int emitted = static_cast<int>(tokens.size() - prompt.size());
  rig.run(tokens, {.max_tokens = 10 - emitted, .depth = 0});
  EXPECT_EQ(tokens, plain_text(model, Sampler({}, 50), prompt, 10));
}

TEST(SpeculativeLoop, AskingForDepthZeroComputesNoDraft) {
  for (const DrafterKind kind : {DrafterKind::kDraftModel, DrafterKind::kMtp}) {
    DecodeRig rig({.kind = kind});
    std::vector<TokenId> tokens = toy_prompt(600);
    const Generation done = rig.run(tokens, {.max_tokens = 20, .depth = 0});
    EXPECT_EQ(done.stats.drafted, 0);
    EXPECT_EQ(rig.watch.drafts, 0);
    EXPECT_TRUE(rig.draft.steps.empty());
    EXPECT_TRUE(rig.mtp.steps.empty());
  }
}

TEST(SpeculativeLoop, TheDraftersOwnDepthIsTheDefault) {
  for (const auto& [kind, depth] : std::vector<std::pair<DrafterKind, int>>{
           {DrafterKind::kNone, 0}, {DrafterKind::kLookup, 8}, {DrafterKind::kDraftModel, 4}, {DrafterKind::kMtp, 1}}) {
    DecodeRig rig({.kind = kind});
    std::vector<TokenId> tokens = toy_prompt(20);
    EXPECT_EQ(rig.run(tokens, {.max_tokens = 20}).stats.depth, depth);
  }
}

TEST(SpeculativeLoop, PromptsThatCannotBeReadAreRefused) {
  DecodeRig rig({.context = 16});
  std::vector<TokenId> none;
  EXPECT_EQ(rig.try_run(none, {}).error().kind, ErrorKind::kInvalidInput);
  std::vector<TokenId> long_prompt = toy_prompt(17);
  EXPECT_EQ(rig.try_run(long_prompt, {}).error().kind, ErrorKind::kInvalidInput);
  for (const TokenId id : {-1, 50}) {
    std::vector<TokenId> foreign{1, 2, id};
    EXPECT_EQ(rig.try_run(foreign, {}).error().kind, ErrorKind::kInvalidInput);
  }
  EXPECT_TRUE(rig.target.steps.empty());
}

TEST(SpeculativeLoop, PromptReadingCanBeCancelledBetweenSteps) {
  DecodeRig rig({.kind = DrafterKind::kMtp});
  std::vector<TokenId> tokens = toy_prompt(1000);
  std::vector<int> heard;
  const Result<Generation> done = generate({.target = rig.target,
                                            .drafter = &rig.watch,
                                            .sampler = rig.sampler,
                                            .tokens = tokens,
                                            .options = {.max_tokens = 5, .prompt_step_rows = 100},
                                            .on_prompt_rows = [&](int rows, int all) {
                                              EXPECT_EQ(all, 1000);
                                              heard.push_back(rows);
                                              return rows >= 300 ? Proceed::kCancel : Proceed::kGoOn;
                                            }});
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(heard, (std::vector<int>{100, 200, 300}));
  EXPECT_EQ(rig.target.length(), 300);
  EXPECT_EQ(tokens.size(), 1000U);
}

/// Proposes what it is told to, whatever the text.
class ScriptedDrafter final : public Drafter {
 public:
  explicit ScriptedDrafter(std::vector<TokenId> drafts) : drafts_(std::move(drafts)) {}
  std::string_view name() const override { return "scripted"; }
  int default_depth() const override { return 3; }
  Status observe(const Observation& /*seen*/) override { return {}; }
  Result<std::span<const TokenId>> draft(const DraftRequest& request) override {
    return std::span<const TokenId>{drafts_}.first(std::min<std::size_t>(drafts_.size(), request.max_drafts));
  }
  Status rewind_to(int /*length*/) override { return {}; }

 private:
  std::vector<TokenId> drafts_;
};

TEST(SpeculativeLoop, DraftsOutsideTheVocabularyAreNotFed) {
  for (const std::vector<TokenId>& drafts :
       std::vector<std::vector<TokenId>>{{}, {50}, {-1}, {3, 50, 4}, {49, 49, 49}}) {
    DecodeRig rig({});
    ScriptedDrafter drafter(drafts);
    std::vector<TokenId> tokens = toy_prompt(10);
    const Result<Generation> done = generate({.target = rig.target,
                                              .drafter = &drafter,
                                              .sampler = rig.sampler,
                                              .tokens = tokens,
                                              .options = {.max_tokens = 20}});
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(tokens, plain_text({}, Sampler({}, 50), toy_prompt(10), 20));
    for (const TokenId id : rig.target.ids()) EXPECT_TRUE(id >= 0 && id < 50);
  }
}

TEST(SpeculativeLoop, AHundredRequestsLeaveNothingBehind) {
  for (const DrafterKind kind : kAllDrafters) {
    DecodeRig rig({.kind = kind, .context = 200, .draft_context = 200});
    for (int request = 0; request < 100; ++request) {
      ASSERT_TRUE(rig.target.rewind_to(0).ok());
      std::vector<TokenId> tokens = toy_prompt(20 + request);
      const std::vector<TokenId> expected = plain_text({}, Sampler({}, 50), tokens, 12);
      rig.run(tokens, {.max_tokens = 12, .depth = 2});
      ASSERT_EQ(tokens, expected);
    }
  }
}

}  // namespace
}  // namespace latte
