#include "plan/step_plan.h"

#include <gtest/gtest.h>

namespace latte {
namespace {

constexpr MlaGeometry kTiny{.heads = 8, .r = 128, .p = 32, .n = 64, .v = 64};

TEST(StepPlan, DecodeStepIsOneAbsorbedCall) {
  StepPlan plan;
  plan_step(kTiny, 300, 4, Role::kGenerated, MlaPath::kAuto, plan);
  EXPECT_EQ(plan.form, MlaForm::kAbsorbed);
  EXPECT_EQ(plan.step_class, StepClass::kDecode);
  EXPECT_EQ(plan.rows_after(), 304);
  ASSERT_EQ(plan.calls.size(), 1U);
  EXPECT_EQ(plan.calls[0].queries, (QueryRun{0, 4}));
  ASSERT_EQ(plan.chunks.size(), 2U);
  EXPECT_EQ(plan.chunks[1].end, 304);  // T counts the rows of this step
}

TEST(StepPlan, ThePromptsFormCountsTheRowsOfTheStepItself) {
  StepPlan plan;  // 113 rows are absorbed over 1000 cached rows, and materialised over the 887 that were there before
  plan_step(kTiny, 887, 113, Role::kPrompt, MlaPath::kAuto, plan);
  EXPECT_EQ(plan.form, MlaForm::kAbsorbed);
  ASSERT_EQ(choose_form(kTiny, {113, 887}), MlaForm::kMaterialised);
}

TEST(StepPlan, AStepAcrossALengthClassAttendsInTwoCalls) {
  StepPlan plan;
  plan_step(kTiny, 16382, 4, Role::kGenerated, MlaPath::kAuto, plan);
  ASSERT_EQ(plan.calls.size(), 2U);
  EXPECT_EQ(plan.calls[0].queries, (QueryRun{0, 2}));
  EXPECT_EQ(plan.calls[1].queries, (QueryRun{2, 2}));
  EXPECT_EQ(plan.chunks[0].end, 256);
  EXPECT_EQ(plan.chunks[static_cast<std::size_t>(plan.calls[1].first_chunk)].end, 512);
  EXPECT_EQ(plan.chunks.back().end, 16386);
}

TEST(StepPlan, TheLeavesOfARowDoNotDependOnTheStepsWidth) {
  for (int before : {0, 255, 256, 1000, 16383, 16384, 40000}) {
    StepPlan one;
    plan_step(kTiny, before, 1, Role::kGenerated, MlaPath::kAuto, one);
    for (int width = 2; width <= kMaxDecodeRows; ++width) {
      StepPlan wide;
      plan_step(kTiny, before, width, Role::kGenerated, MlaPath::kAuto, wide);
      const AttendCall& call = wide.calls.front();
      for (int i = 0; i < one.calls.front().chunk_count; ++i) {
        const KvChunk& a = one.chunks[static_cast<std::size_t>(i)];
        const KvChunk& b = wide.chunks[static_cast<std::size_t>(call.first_chunk + i)];
        EXPECT_EQ(a.begin, b.begin);
        if (a.end != before + 1) {
          EXPECT_EQ(a.end, b.end);
        }
      }
    }
  }
}

TEST(StepPlan, PromptBlocksBoundTheWorkspace) {
  StepPlan plan;
  plan_step(kDeepSeekV3, 32000, 512, Role::kPrompt, MlaPath::kAbsorbed, plan);
  int next = 0;
  for (const AttendCall& call : plan.calls) {
    EXPECT_EQ(call.queries.first_query, next);
    next += call.queries.query_count;
    EXPECT_LE(std::int64_t{call.queries.query_count} * 128 * 576, kPackedValuesPerCall);
  }
  EXPECT_EQ(next, 512);
}

TEST(StepPlan, MaterialisedChunksFoldIntoOneSlot) {
  StepPlan plan;
  plan_step(kTiny, 0, 600, Role::kPrompt, MlaPath::kAuto, plan);
  EXPECT_EQ(plan.form, MlaForm::kMaterialised);
  ASSERT_EQ(plan.chunks.size(), 3U);
  EXPECT_TRUE(plan.chunks[0].opens_slot);
  EXPECT_FALSE(plan.chunks[1].opens_slot);
  EXPECT_EQ(plan.chunks[2], (KvChunk{0, 512, 600, 0, false}));
  EXPECT_EQ(plan.max_slots(), 1);
}

TEST(StepPlan, AReusedPlanHoldsNothingOfTheLastStep) {
  StepPlan plan, fresh;
  plan_step(kTiny, 9000, 300, Role::kPrompt, MlaPath::kAbsorbed, plan);
  plan_step(kTiny, 10, 1, Role::kGenerated, MlaPath::kAuto, plan);
  plan_step(kTiny, 10, 1, Role::kGenerated, MlaPath::kAuto, fresh);
  EXPECT_EQ(plan.chunks, fresh.chunks);
  EXPECT_EQ(plan.calls.size(), fresh.calls.size());
  EXPECT_EQ(explain(plan), explain(fresh));
}

constexpr GqaGeometry kGrouped{.heads = 32, .kv_heads = 8, .head_dim = 128};

// The keys of a generated row are divided by its own visible length, as with latent attention.
TEST(StepPlan, GqaRowMeetsTheSameChunksInEveryStep) {
  StepPlan alone, among;
  for (const int position : {0, 200, 16382, 16384, 40000}) {
    plan_step(kGrouped, position, 1, Role::kGenerated, alone);
    for (const int rows : {2, 16}) {
      plan_step(kGrouped, position, rows, Role::kGenerated, among);
      const AttendCall& call = among.calls.front();
      for (std::size_t i = 0; i < alone.chunks.size(); ++i)
        EXPECT_EQ(alone.chunks[i].begin, among.chunks[i].begin) << position << " " << rows;
      EXPECT_EQ(call.queries.first_query, 0);
      EXPECT_EQ(among.form, MlaForm::kGqa);
    }
  }
}

TEST(StepPlan, GqaPromptBlocksBoundTheWorkspace) {
  StepPlan plan;
  plan_step(kGrouped, 32000, 4096, Role::kPrompt, plan);
  int next = 0;
  for (const AttendCall& call : plan.calls) {
    EXPECT_EQ(call.queries.first_query, next);
    next += call.queries.query_count;
    EXPECT_LE(std::int64_t{call.queries.query_count} * 32 * 128, kPackedValuesPerCall);
  }
  EXPECT_EQ(next, 4096);
  EXPECT_EQ(plan.step_class, StepClass::kPrompt);
}

TEST(StepPlan, ExplainsItselfInOneLine) {
  StepPlan gqa;
  plan_step(kGrouped, 300, 2, Role::kGenerated, gqa);
  EXPECT_EQ(
      explain(gqa),
      "gqa: 32 query heads read 8 cached keys and values a row; 1 attention call, 2 key chunks of at most 256 rows, 2 "
      "partial slots at most");
  StepPlan plan;
  plan_step(kTiny, 300, 2, Role::kGenerated, MlaPath::kAuto, plan);
  EXPECT_EQ(explain(plan),
            "absorbed: 2 generated rows keep one numeric family; 1 attention call, 2 key chunks of at most 256 rows, 2 "
            "partial slots at most");
}

// Whatever the step: its calls share out the queries in order, and each call's chunks are every key its last query
// sees.
TEST(StepPlan, CallsCoverEveryQueryAndEveryKeyOnce) {
  constexpr std::int64_t kPartialValues = 1 << 20;  // what a call's partial results may hold
  constexpr int kFoldedSlots = 16;                  // ... unless its leaves, 128 at most, are folded by eights already
  for (const MlaGeometry& g : {kTiny, kDeepSeekV3, kMiniCpm3}) {
    for (const int before : {0, 1, 255, 256, 600, 8185, 16380, 40000}) {
      for (const int rows : {1, 2, 7, 14, 16, 28, 56, 129, 512}) {
        for (const Role role : {Role::kPrompt, Role::kGenerated}) {
          for (const MlaPath path : {MlaPath::kAuto, MlaPath::kAbsorbed, MlaPath::kMaterialised}) {
            if (role == Role::kGenerated && rows > kMaxDecodeRows) continue;
            StepPlan plan;
            plan_step(g, before, rows, role, path, plan);
            int next_query = 0, next_chunk = 0;
            for (const AttendCall& call : plan.calls) {
              ASSERT_EQ(call.queries.first_query, next_query);
              ASSERT_GT(call.queries.query_count, 0);
              next_query += call.queries.query_count;
              ASSERT_EQ(call.first_chunk, next_chunk);
              ASSERT_GT(call.chunk_count, 0);
              next_chunk += call.chunk_count;
              int key = 0;
              for (int i = call.first_chunk; i < next_chunk; ++i) {
                ASSERT_EQ(plan.chunks[static_cast<std::size_t>(i)].begin, key);
                key = plan.chunks[static_cast<std::size_t>(i)].end;
              }
              ASSERT_EQ(key, before + next_query) << "the keys its last query sees";
              if (plan.form == MlaForm::kAbsorbed) {
                const std::int64_t slot = std::int64_t{call.queries.query_count} * g.heads * g.r;
                ASSERT_TRUE(call.slots <= kFoldedSlots || call.slots * slot <= kPartialValues);
              }
            }
            ASSERT_EQ(next_query, rows);
            ASSERT_EQ(next_chunk, static_cast<int>(plan.chunks.size()));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace latte
