#include "plan/choose_isa.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace latte {
namespace {

constexpr std::string_view kZen3[] = {"scalar", "avx2"};
constexpr std::string_view kSkylakeServer[] = {"scalar", "avx2", "avx512"};
constexpr std::string_view kIceLake[] = {"scalar", "avx2", "avx512", "avx512_vnni"};
constexpr std::string_view kPairs[] = {"scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16"};
constexpr std::string_view kTiles[] = {"scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "amx"};
constexpr std::string_view kArm[] = {"scalar", "neon"};

constexpr ProcessorModel kSapphireRapids{"GenuineIntel", 6, 0x8f};
constexpr ProcessorModel kZen4{"AuthenticAMD", 25, 0x11};
constexpr ProcessorModel kUnknown{"GenuineIntel", 6, 0xff};

// By the table of processors, without a measurement.
static_assert(choose_isa(kPairs, kSapphireRapids) == "avx512_vnni");  // no permission for tiles
static_assert(choose_isa(kTiles, kSapphireRapids) == "amx");
static_assert(choose_isa(kPairs, kZen4) == "avx512_bf16");
static_assert(choose_isa(kPairs, kUnknown) == "avx512_bf16");
static_assert(choose_isa(kPairs, ProcessorModel{"AuthenticAMD", 6, 0x8f}) == "avx512_bf16");  // numbers of another make
static_assert(choose_isa(kZen3, ProcessorModel{"AuthenticAMD", 25, 1}) == "avx2");
static_assert(choose_isa(kArm, ProcessorModel{}) == "neon");
static_assert(choose_isa(std::span(kArm).first(1), ProcessorModel{}) == "scalar");

/// Rates a core: of f32 with AVX2 and AVX-512, of bytes, and of bf16.
std::vector<DotRate> rates(double avx2, double avx512, double bytes, double vnni, double pairs, double tiles) {
  return {{"avx2", DotType::kF32, "", avx2},         {"avx2", DotType::kInt8, "", bytes / 2},
          {"avx512", DotType::kF32, "", avx512},     {"avx512", DotType::kInt8, "", bytes},
          {"avx512_vnni", DotType::kInt8, "", vnni}, {"avx512_bf16", DotType::kBf16, "", pairs},
          {"amx", DotType::kBf16, "", tiles},        {"amx", DotType::kInt8, "", 2 * tiles}};
}

TEST(ChooseIsa, SapphireRapidsMultipliesWidenedBf16) {
  const std::vector<DotRate> measured = rates(73, 145, 145, 428, 78, 3200);
  EXPECT_EQ(choose_isa(kPairs, measured), "avx512_vnni");
  EXPECT_EQ(choose_isa(kTiles, measured), "amx");
}

TEST(ChooseIsa, Zen4MultipliesPairs) {
  EXPECT_EQ(choose_isa(kPairs, rates(150, 150, 150, 600, 300, 0)), "avx512_bf16") << "f32 is no faster in 512 bits";
}

TEST(ChooseIsa, EqualRatesTakeTheWiderSetWhateverTheNoise) {
  for (const double noise : {0.8, 1.0, 1.2}) {
    EXPECT_EQ(choose_isa(kPairs, rates(75, 150, 150, 600, 150 * noise, 0)), "avx512_bf16") << noise;
    EXPECT_EQ(choose_isa(kSkylakeServer, rates(150, 150 * noise, 150, 0, 0, 0)), "avx512") << noise;
  }
}

TEST(ChooseIsa, HalfTheRateIsPassedOverWhateverTheNoise) {
  for (const double noise : {0.8, 1.0, 1.3})
    EXPECT_EQ(choose_isa(kPairs, rates(75, 150, 150, 600, 75 * noise, 0)), "avx512_vnni") << noise;
}

TEST(ChooseIsa, EveryInstructionOfASetMustBeWorthIt) {
  EXPECT_EQ(choose_isa(kIceLake, rates(75, 150, 150, 60, 0, 0)), "avx512") << "slow byte products";
  EXPECT_EQ(choose_isa(kSkylakeServer, rates(150, 75, 150, 0, 0, 0)), "avx2") << "slow f32";
  EXPECT_EQ(choose_isa(kTiles, rates(75, 150, 150, 600, 300, 100)), "avx512_bf16") << "slow tiles";
}

TEST(ChooseIsa, ASetWithoutARateHasNothingAgainstIt) {
  EXPECT_EQ(choose_isa(kPairs, std::vector<DotRate>{}), "avx512_bf16");
  EXPECT_EQ(choose_isa(kArm, std::vector<DotRate>{}), "neon");
}

TEST(ChooseIsa, RatesOfSetsThatCannotBeUsedDoNotCount) {
  EXPECT_EQ(choose_isa(kSkylakeServer, rates(75, 150, 150, 6000, 3000, 9000)), "avx512");
}

TEST(ChooseIsa, OneSetBesideScalarIsNoChoice) {
  EXPECT_FALSE(isa_is_a_choice(kZen3));
  EXPECT_FALSE(isa_is_a_choice(kArm));
  EXPECT_TRUE(isa_is_a_choice(kSkylakeServer));
}

}  // namespace
}  // namespace latte
