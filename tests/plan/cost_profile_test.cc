#include "plan/cost_profile.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "plan/choose_form.h"
#include "plan/step_plan.h"

namespace latte {
namespace {

/// Costs of `absorbed` and `ordinary` microseconds per row and key, `expand` per cached row.
constexpr CostProfile profile_of(double absorbed, double expand, double ordinary) {
  CostProfile profile;
  for (std::size_t i = 0; i < kProfileRows.size(); ++i) {
    profile.fold_us[i] = kProfileRows[i];
    profile.absorbed_key_us[i] = absorbed * kProfileRows[i];
    profile.ordinary_key_us[i] = ordinary * kProfileRows[i];
  }
  profile.expand_row_us = expand;
  return profile;
}

constexpr CostProfile kAbsorbedIsFree = profile_of(1e-6, 100, 1);
constexpr CostProfile kExpansionIsFree = profile_of(1, 1e-6, 1e-6);

static_assert(choose_form(kDeepSeekV3, {512, 512}, FormRule(MlaPath::kAuto, &kAbsorbedIsFree)) == MlaForm::kAbsorbed);
static_assert(choose_form(kDeepSeekV3, {2, 32768}, FormRule(MlaPath::kAuto, &kExpansionIsFree)) ==
              MlaForm::kMaterialised);

TEST(CostProfile, CostsAreLinearBetweenRowCountsAndProportionalPastThem) {
  CostByRows costs{};
  for (std::size_t i = 0; i < costs.size(); ++i) costs[i] = 10 + 2 * kProfileRows[i];
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 1), 14);
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 2), 14);
  for (std::int64_t rows = 2; rows <= 1024; ++rows)
    ASSERT_DOUBLE_EQ(cost_of_rows(costs, rows), 10 + 2 * static_cast<double>(rows));
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 48), 106);
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 1000), 2010);
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 1024), 2058);
  EXPECT_DOUBLE_EQ(cost_of_rows(costs, 4096), 4 * 2058);
}

TEST(CostProfile, AnExactMarginLeavesTheFormulaItsChoice) {
  // Calls that cost the same whatever they hold: the other form is cheaper by the margin to the last bit.
  constexpr StepShape kFew{2, 32768}, kMany{1024, 1024};
  static_assert(choose_form(kDeepSeekV3, kFew) == MlaForm::kAbsorbed);
  static_assert(choose_form(kDeepSeekV3, kMany) == MlaForm::kMaterialised);
  CostProfile profile;
  profile.absorbed_us = kProfileMargin;
  profile.materialised_us = 1;
  EXPECT_EQ(choose_form(kDeepSeekV3, kFew, profile), MlaForm::kAbsorbed);
  profile.absorbed_us = std::nextafter(kProfileMargin, 2);
  EXPECT_EQ(choose_form(kDeepSeekV3, kFew, profile), MlaForm::kMaterialised);
  profile.absorbed_us = 1;
  profile.materialised_us = kProfileMargin;
  EXPECT_EQ(choose_form(kDeepSeekV3, kMany, profile), MlaForm::kMaterialised);
  profile.materialised_us = std::nextafter(kProfileMargin, 2);
  EXPECT_EQ(choose_form(kDeepSeekV3, kMany, profile), MlaForm::kAbsorbed);
}

TEST(CostProfile, RowsSeeTheCausalTriangle) {
  EXPECT_DOUBLE_EQ(mean_visible_rows(1, 10), 10);
  EXPECT_DOUBLE_EQ(mean_visible_rows(4, 4), 2.5);
  EXPECT_DOUBLE_EQ(mean_visible_rows(3, 10), 9);
}

TEST(ChooseByProfile, FollowsTheCostsInBothDirections) {
  for (const int cached : {600, 4096, 32768}) {
    for (const int rows : {2, 100, 512}) {
      EXPECT_EQ(choose_form(kDeepSeekV3, {rows, cached}, FormRule(MlaPath::kAuto, &kAbsorbedIsFree)),
                MlaForm::kAbsorbed);
      EXPECT_EQ(choose_form(kDeepSeekV3, {rows, cached}, FormRule(MlaPath::kAuto, &kExpansionIsFree)),
                MlaForm::kMaterialised);
    }
  }
}

TEST(ChooseByProfile, NeedsThreePercentToLeaveTheFormula) {
  // At L = 64, T = 4096 the formula absorbs; the materialised form costs expand * T.
  const double absorbed = absorbed_us(profile_of(1e-3, 1, 1e-9), 64, 4096);
  const auto form_at = [&](double gain) {
    const CostProfile profile = profile_of(1e-3, absorbed / gain / 4096, 1e-9);
    return choose_form(kDeepSeekV3, {64, 4096}, FormRule(MlaPath::kAuto, &profile));
  };
  EXPECT_EQ(form_at(1.0), MlaForm::kAbsorbed);
  EXPECT_EQ(form_at(1.025), MlaForm::kAbsorbed);
  EXPECT_EQ(form_at(1.035), MlaForm::kMaterialised);
}

TEST(ChooseByProfile, GeneratedRowsAndSingleRowsAreNotAsked) {
  const FormRule rule(MlaPath::kAuto, &kExpansionIsFree);
  for (int rows = 1; rows <= kMaxDecodeRows; ++rows)
    EXPECT_EQ(choose_form(kDeepSeekV3, {rows, 32768, Role::kGenerated}, rule), MlaForm::kAbsorbed) << rows;
  EXPECT_EQ(choose_form(kDeepSeekV3, {1, 32768, Role::kPrompt}, rule), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kDeepSeekV3, {17, 32768, Role::kGenerated}, rule), MlaForm::kMaterialised)
      << "a wide step is prompt-class whatever its role";
}

TEST(ChooseByProfile, OnlyPathAutoAsks) {
  for (const MlaPath path : {MlaPath::kAbsorbed, MlaPath::kMaterialised, MlaPath::kFormula, MlaPath::kPinned}) {
    for (const CostProfile* profile : {&kAbsorbedIsFree, &kExpansionIsFree}) {
      for (const int rows : {1, 2, 64, 512}) {
        const StepShape step{rows, 4096};
        EXPECT_EQ(choose_form(kDeepSeekV3, step, FormRule(path, profile)), choose_form(kDeepSeekV3, step, path));
      }
    }
  }
}

RC_GTEST_PROP(ChooseByProfile, WithoutAProfileTheFormulaStands, ()) {
  const std::int64_t cached = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 31);
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(1, std::min<std::int64_t>(cached, 4096) + 1);
  const Role role = *rc::gen::element(Role::kPrompt, Role::kGenerated);
  RC_ASSERT(choose_form(kDeepSeekV3, {rows, cached, role}, FormRule()) ==
            choose_form(kDeepSeekV3, {rows, cached, role}));
}

TEST(ChooseByProfile, CrossoverIsTheFirstStepThatMaterialises) {
  EXPECT_EQ(max_absorbed_rows(kDeepSeekV3, 2048, kAbsorbedIsFree), std::nullopt);
  EXPECT_EQ(max_absorbed_rows(kDeepSeekV3, 2048, kExpansionIsFree), 1);
  const CostProfile between = profile_of(1e-3, 0.1, 0.5e-3);
  const auto most = max_absorbed_rows(kDeepSeekV3, 2048, between);
  ASSERT_TRUE(most.has_value());
  const FormRule rule(MlaPath::kAuto, &between);
  EXPECT_EQ(choose_form(kDeepSeekV3, {*most, 2048}, rule), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kDeepSeekV3, {*most + 1, 2048}, rule), MlaForm::kMaterialised);
}

TEST(ChooseByProfile, PlanAndExplanationFollowTheRule) {
  StepPlan plan;
  plan_step(kDeepSeekV3, 0, 512, Role::kPrompt, FormRule(MlaPath::kAuto, &kAbsorbedIsFree), plan);
  EXPECT_EQ(plan.form, MlaForm::kAbsorbed);
  const std::string why = explain(plan);
  EXPECT_EQ(why.find("absorbed: 512 rows over 512 cached rows take "), 0u) << why;
  EXPECT_NE(why.find("by this machine's profile (formula: materialised)"), std::string::npos) << why;
  plan_step(kDeepSeekV3, 100, 4, Role::kGenerated, FormRule(MlaPath::kAuto, &kExpansionIsFree), plan);
  EXPECT_EQ(plan.form, MlaForm::kAbsorbed);
  EXPECT_EQ(explain(plan).find("absorbed: 4 generated rows keep one numeric family"), 0u);
}

}  // namespace
}  // namespace latte
