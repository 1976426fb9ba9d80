#include "plan/choose_form.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

namespace latte {
namespace {

constexpr MlaGeometry kWideExpansion{.heads = 4, .r = 64, .p = 16, .n = 128, .v = 128};  // d = 256 > 2r = 128
constexpr MlaGeometry kEvenExpansion{.heads = 4, .r = 64, .p = 16, .n = 64, .v = 64};    // d = 2r

// The table of the two forms' crossover: largest absorbed L at T = 256, 512, 1K, 2K, 8K, 32K and without bound.
struct CrossoverRow {
  MlaGeometry geometry;
  std::array<std::int64_t, 6> most_rows;
  std::int64_t limit;
};
constexpr std::array<std::int64_t, 6> kCached = {256, 512, 1024, 2048, 8192, 32768};
constexpr std::array kTable = {
    CrossoverRow{kDeepSeekV3, {102, 127, 146, 157, 167, 169}, 170},
    CrossoverRow{kGlm47Flash, {155, 223, 286, 333, 379, 393}, 398},
    CrossoverRow{kGlm53Flash, {170, 255, 341, 409, 481, 504}, 511},
    CrossoverRow{kMiniCpm3, {63, 73, 78, 81, 84, 85}, 85},
};

constexpr bool table_holds() {
  for (const CrossoverRow& row : kTable) {
    for (std::size_t i = 0; i < kCached.size(); ++i) {
      if (max_absorbed_rows(row.geometry, kCached[i]) != row.most_rows[i]) return false;
      if (choose_form(row.geometry, {row.most_rows[i], kCached[i]}) != MlaForm::kAbsorbed) return false;
      if (choose_form(row.geometry, {row.most_rows[i] + 1, kCached[i]}) != MlaForm::kMaterialised) return false;
    }
    if (absorbed_rows_limit(row.geometry) != row.limit) return false;
    if (max_absorbed_rows(row.geometry, std::int64_t{1} << 40) != row.limit) return false;
  }
  return true;
}
static_assert(table_holds());

static_assert(choose_form(kDeepSeekV3, {.new_rows = 170, .rows_after_append = 1 << 30}) == MlaForm::kAbsorbed);
static_assert(choose_form(kDeepSeekV3, {.new_rows = 171, .rows_after_append = 1 << 30}) == MlaForm::kMaterialised);
static_assert(choose_form(kDeepSeekV3, {.new_rows = 512, .rows_after_append = 512}) ==
              MlaForm::kMaterialised);  // cold cache
static_assert(choose_form(kDeepSeekV3, {.new_rows = 1, .rows_after_append = 1}) == MlaForm::kAbsorbed);
static_assert(choose_form(kDeepSeekV3, {.new_rows = 2, .rows_after_append = 2}) == MlaForm::kMaterialised);
// Generated rows keep one family, up to the width of a decode-class step.
static_assert(choose_form(kDeepSeekV3, {.new_rows = 16, .rows_after_append = 16, .role = Role::kGenerated}) ==
              MlaForm::kAbsorbed);
static_assert(choose_form(kDeepSeekV3, {.new_rows = 17, .rows_after_append = 17, .role = Role::kGenerated}) ==
              MlaForm::kMaterialised);
// d > 2r: absorbed for every L <= T. d = 2r: absorbed below T, a tie at T materialises.
static_assert(!max_absorbed_rows(kWideExpansion, 1 << 20).has_value());
static_assert(!absorbed_rows_limit(kWideExpansion).has_value() && !absorbed_rows_limit(kEvenExpansion).has_value());
static_assert(choose_form(kWideExpansion, {.new_rows = 4096, .rows_after_append = 4096}) == MlaForm::kAbsorbed);
static_assert(choose_form(kEvenExpansion, {.new_rows = 4095, .rows_after_append = 4096}) == MlaForm::kAbsorbed);
static_assert(choose_form(kEvenExpansion, {.new_rows = 4096, .rows_after_append = 4096}) == MlaForm::kMaterialised);
// No overflow where L * T * (2r - d) leaves 64 bits.
static_assert(choose_form({.heads = 1, .r = 16384, .p = 64, .n = 64, .v = 64}, {1 << 30, 1 << 30}) ==
              MlaForm::kMaterialised);

TEST(ChooseForm, CrossoverTableAtRunTime) {
  volatile std::size_t rows = kTable.size();  // so that the run-time code is exercised too
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t t = 0; t < kCached.size(); ++t) {
      EXPECT_EQ(max_absorbed_rows(kTable[i].geometry, kCached[t]), kTable[i].most_rows[t]);
      EXPECT_EQ(choose_form(kTable[i].geometry, {kTable[i].most_rows[t], kCached[t]}), MlaForm::kAbsorbed);
      EXPECT_EQ(choose_form(kTable[i].geometry, {kTable[i].most_rows[t] + 1, kCached[t]}), MlaForm::kMaterialised);
    }
    EXPECT_EQ(absorbed_rows_limit(kTable[i].geometry), kTable[i].limit);
  }
}

TEST(ChooseForm, SpecialGeometriesAtRunTime) {
  EXPECT_EQ(choose_form(kWideExpansion, {4096, 4096}), MlaForm::kAbsorbed);
  EXPECT_FALSE(max_absorbed_rows(kWideExpansion, 1 << 20).has_value());
  EXPECT_FALSE(absorbed_rows_limit(kEvenExpansion).has_value());
  EXPECT_EQ(choose_form(kEvenExpansion, {4095, 4096}), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kEvenExpansion, {4096, 4096}), MlaForm::kMaterialised);
  EXPECT_EQ(choose_form(kDeepSeekV3, {1, 1}), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kDeepSeekV3, {2, 2}), MlaForm::kMaterialised);
  EXPECT_EQ(choose_form(kDeepSeekV3, {16, 16, Role::kGenerated}), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kDeepSeekV3, {17, 17, Role::kGenerated}), MlaForm::kMaterialised);
  EXPECT_EQ(step_class(Role::kGenerated, 16), StepClass::kDecode);
  EXPECT_EQ(step_class(Role::kGenerated, 17), StepClass::kPrompt);
  EXPECT_EQ(step_class(Role::kPrompt, 1), StepClass::kPrompt);
}

RC_GTEST_PROP(ChooseForm, AgreesWithTheQuotient, ()) {
  const MlaGeometry g{.heads = 1,
                      .r = *rc::gen::inRange(1, 2048),
                      .p = 0,
                      .n = *rc::gen::inRange(1, 2048),
                      .v = *rc::gen::inRange(1, 2048)};
  const std::int64_t cached = *rc::gen::inRange<std::int64_t>(2, std::int64_t{1} << 31);
  const std::int64_t rows = *rc::gen::inRange<std::int64_t>(2, std::min<std::int64_t>(cached, 4096) + 1);
  const auto most = max_absorbed_rows(g, cached);
  const bool absorbed = !most.has_value() || rows <= *most;
  RC_ASSERT((choose_form(g, {rows, cached}) == MlaForm::kAbsorbed) == absorbed);
}

TEST(ChooseForm, ForcedPathsOverrideTheFormula) {
  EXPECT_EQ(choose_form(kDeepSeekV3, {512, 512}, MlaPath::kAbsorbed), MlaForm::kAbsorbed);
  EXPECT_EQ(choose_form(kDeepSeekV3, {1, 512}, MlaPath::kMaterialised), MlaForm::kMaterialised);
  EXPECT_EQ(choose_form(kDeepSeekV3, {512, 512}, MlaPath::kAuto), MlaForm::kMaterialised);
  EXPECT_EQ(choose_form(kDeepSeekV3, {512, 512}, MlaPath::kFormula), MlaForm::kMaterialised);
}

TEST(ChooseForm, PinnedMaterialisesEveryPromptRowAndNoGeneratedOne) {
  for (const int rows : {1, 2, 16, 17, 512}) {
    EXPECT_EQ(choose_form(kDeepSeekV3, {rows, 32768, Role::kPrompt}, MlaPath::kPinned), MlaForm::kMaterialised);
    EXPECT_EQ(choose_form(kDeepSeekV3, {rows, 32768, Role::kGenerated}, MlaPath::kPinned),
              rows <= kMaxDecodeRows ? MlaForm::kAbsorbed : MlaForm::kMaterialised);
  }
}

TEST(ChooseForm, CountsTheMultiplyAddsOfTheForms) {
  // L*r*d + 2*L*T*r and T*r*d + L*T*d with r = 512, d = 256.
  EXPECT_EQ(absorbed_macs(kDeepSeekV3, {4, 1024}), WideInt{4} * 512 * 256 + WideInt{2} * 4 * 1024 * 512);
  EXPECT_EQ(materialised_macs(kDeepSeekV3, {4, 1024}), WideInt{1024} * 512 * 256 + WideInt{4} * 1024 * 256);
}

TEST(ExplainForm, NamesTheReason) {
  EXPECT_EQ(explain_form(kDeepSeekV3, {1, 10}, MlaPath::kAuto),
            "absorbed: a single row is absorbed before any formula");
  EXPECT_EQ(explain_form(kDeepSeekV3, {4, 10, Role::kGenerated}, MlaPath::kAuto),
            "absorbed: 4 generated rows keep one numeric family");
  EXPECT_EQ(
      explain_form(kDeepSeekV3, {4, 1024}, MlaPath::kAuto),
      "absorbed: 4 rows over 1024 cached rows cost 4718592 multiply-adds a head absorbed, 135266304 materialised");
  EXPECT_EQ(explain_form(kDeepSeekV3, {4, 10}, MlaPath::kMaterialised), "materialised: forced by --mla-path");
  EXPECT_EQ(explain_form(kDeepSeekV3, {1, 10}, MlaPath::kPinned),
            "materialised: prompt rows are, under --numerics pinned");
}

}  // namespace
}  // namespace latte
