#include "api/attention_floor.h"

#include <gtest/gtest.h>

#include <vector>

#include "plan/choose_form.h"

namespace latte {
namespace {

constexpr MlaGeometry kSmall{.heads = 3, .r = 16, .p = 4, .n = 8, .v = 6};

TEST(AttentionOperations, CountEveryMultiplicationAndAddition) {
  for (const int before : {0, 1, 17}) {
    for (const int rows : {1, 2, 9}) {
      std::int64_t expanded = 0, absorbed = 0;
      for (int row = 0; row < rows; ++row) {
        for (int key = 0; key <= before + row; ++key) {
          expanded += kSmall.n + kSmall.p + kSmall.v;
          absorbed += kSmall.r + kSmall.p + kSmall.r;
        }
        absorbed += kSmall.r * kSmall.n + kSmall.v * kSmall.r;
      }
      const std::int64_t expansion = std::int64_t{before + rows} * kSmall.r * (kSmall.n + kSmall.v);
      const auto counted = [&](AttentionArm arm) { return attention_operations(kSmall, arm, before, rows).total(); };
      EXPECT_EQ(counted(AttentionArm::kExpanded), 2 * kSmall.heads * expanded);
      EXPECT_EQ(counted(AttentionArm::kMaterialised), 2 * kSmall.heads * (expansion + expanded));
      EXPECT_EQ(counted(AttentionArm::kAbsorbed), 2 * kSmall.heads * absorbed);
    }
  }
}

TEST(AttentionOperations, OneRowIsWhatTheFormulaOfTheFormsCounts) {
  const StepShape step{.new_rows = 1, .rows_after_append = 4097};
  const std::int64_t rope = step.rows_after_append * kSmall.p;
  EXPECT_EQ(attention_operations(kSmall, AttentionArm::kAbsorbed, 4096, 1).total(),
            2 * kSmall.heads * (static_cast<std::int64_t>(absorbed_macs(kSmall, step)) + rope));
  EXPECT_EQ(attention_operations(kSmall, AttentionArm::kMaterialised, 4096, 1).total(),
            2 * kSmall.heads * (static_cast<std::int64_t>(materialised_macs(kSmall, step)) + rope));
}

TEST(AttentionOperations, PartsAreTheCoreAndTheProducts) {
  const auto absorbed = attention_operations(kSmall, AttentionArm::kAbsorbed, 5, 2);
  EXPECT_EQ(absorbed.core, 2 * 3 * (6 + 7) * (16 + 4 + 16));
  EXPECT_EQ(absorbed.products, 2 * 3 * 2 * 16 * (8 + 6));
  const auto materialised = attention_operations(kSmall, AttentionArm::kMaterialised, 5, 2);
  EXPECT_EQ(materialised.core, 2 * 3 * (6 + 7) * (8 + 4 + 6));
  EXPECT_EQ(materialised.products, 2 * 3 * 7 * 16 * (8 + 6));
  EXPECT_EQ(attention_operations(kSmall, AttentionArm::kExpanded, 5, 2).products, 0);
}

TEST(PartFloor, IsTheLongerOfReadingAndComputing) {
  EXPECT_DOUBLE_EQ(part_floor(2'000'000'000, 4, 3'000'000'000, 10), 0.5);
  EXPECT_DOUBLE_EQ(part_floor(2'000'000'000, 4, 30'000'000'000, 10), 3);
  EXPECT_DOUBLE_EQ(part_floor(2'000'000'000, 4, 30'000'000'000, 0), 0.5);
  EXPECT_DOUBLE_EQ(part_floor(0, 4, 0, 10), 0);
}

TEST(AttentionRate, IsOfTheWidestInstructionThatTheSetsAttentionUses) {
  const std::vector<DotRate> rates = {{"scalar", DotType::kF32, "s", 1},       {"avx2", DotType::kF32, "y", 2},
                                      {"avx2", DotType::kInt8, "yi", 3},       {"avx512", DotType::kF32, "z", 4},
                                      {"avx512", DotType::kInt8, "zi", 5},     {"avx512_vnni", DotType::kInt8, "v", 6},
                                      {"avx512_bf16", DotType::kBf16, "b", 7}, {"amx", DotType::kBf16, "t", 8},
                                      {"amx", DotType::kInt8, "ti", 9}};
  const auto instruction = [&](std::string_view isa, bool rounded = false) -> std::string_view {
    const DotRate* rate = attention_rate(rates, isa, rounded);
    return rate == nullptr ? "none" : rate->instruction;
  };
  EXPECT_EQ(instruction("scalar"), "s");
  EXPECT_EQ(instruction("avx2"), "y");
  EXPECT_EQ(instruction("avx512"), "z");
  EXPECT_EQ(instruction("avx512_vnni"), "z");
  EXPECT_EQ(instruction("avx512_bf16"), "z");
  EXPECT_EQ(instruction("avx512_bf16", true), "b");
  EXPECT_EQ(instruction("amx", true), "t");
  EXPECT_EQ(instruction("amx"), "z");
  EXPECT_EQ(instruction("neon"), "none");
  EXPECT_EQ(instruction(""), "none");
  EXPECT_EQ(attention_rate({}, "avx2", true), nullptr);
}

}  // namespace
}  // namespace latte
