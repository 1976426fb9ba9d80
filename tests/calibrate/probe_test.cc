#include "calibrate/probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/kv_chunk.h"
#include "plan/step_plan.h"

namespace latte {
namespace {

constexpr double kFoldUs = 3, kAbsorbedUs = 0.02, kExpandUs = 5, kOrdinaryUs = 0.004;
constexpr double kCallUs = 40;

/// A device whose costs are straight lines: microseconds of a whole layer by rows and keys, plus those of a call.
struct MadeUpDevice {
  MlaGeometry geometry;
  double now = 0;       ///< seconds
  double slowdown = 1;  ///< of everything
  int runs = 0;

  double seconds(const Probe& probe) {
    const double rows = probe.rows;
    double us = 0;
    if (probe.part == Part::kFold) us = kFoldUs * rows;
    if (probe.part == Part::kAbsorbedCore) us = kAbsorbedUs * rows * mean_visible_rows(probe.rows, probe.keys);
    if (probe.part == Part::kExpansion) us = kExpandUs * probe.keys;
    if (probe.part == Part::kOrdinaryCore) us = kOrdinaryUs * rows * probe.keys;
    ++runs;
    const double taken = (us * probe.heads / geometry.heads) * slowdown * 1e-6;
    now += taken;
    return taken;
  }
};

Result<CostProfile> measure(MadeUpDevice& device, const MeasureLimits& limits = {}) {
  return measure_profile(
      device.geometry, 2, [&](const Probe& probe) -> Result<double> { return device.seconds(probe); },
      [&] { return device.now; }, limits);
}

TEST(FitProfile, FindsMadeUpCostsAgain) {
  for (const MlaGeometry& g : {kDeepSeekV3, kDeepSeekV2Lite, kGlm47Flash, kMiniCpm3, kGlm53Flash}) {
    MadeUpDevice device{.geometry = g};
    const Result<CostProfile> profile = measure(device);
    ASSERT_TRUE(profile.ok()) << profile.error().message;
    for (const int cached : {256, 1000, 4096, 32768}) {
      for (const int rows : {2, 3, 16, 100, 200, 256, 700, 1024, 3000}) {
        if (rows > cached) continue;
        const double seen = mean_visible_rows(rows, cached) * rows;
        EXPECT_NEAR(absorbed_us(*profile, rows, cached) / (kFoldUs * rows + kAbsorbedUs * seen), 1, 1e-6);
        EXPECT_NEAR(materialised_us(*profile, rows, cached) / (kExpandUs * cached + kOrdinaryUs * seen), 1, 1e-6);
      }
    }
  }
}

TEST(FitProfile, WhatSmallProbesTakeBesideTheirWorkIsTheCostOfACall) {
  const MlaGeometry g = kDeepSeekV2Lite;
  const std::vector<Probe> probes = probe_list(g, 2, 1e9);
  MadeUpDevice device{.geometry = g};
  std::vector<double> seconds;
  for (std::size_t i = 0; i < probes.size(); ++i)
    seconds.push_back(device.seconds(probes[i]) + (i < 4 ? kCallUs * 1e-6 : 0));
  const Result<CostProfile> profile = fit_profile(g, probes, seconds);
  ASSERT_TRUE(profile.ok());
  EXPECT_NEAR(profile->absorbed_us, 2 * kCallUs, 1e-6) << "a fold and an attention call";
  EXPECT_NEAR(profile->materialised_us, 2 * kCallUs, 1e-6) << "an expansion and an attention call";
}

TEST(FitProfile, NoiseOfOneRowCountIsSeenByItsNeighbours) {
  const MlaGeometry g = kDeepSeekV2Lite;
  const std::vector<Probe> probes = probe_list(g, 2, 1e9);
  MadeUpDevice device{.geometry = g};
  std::vector<double> seconds;
  for (const Probe& probe : probes) {
    const bool disturbed = probe.part == Part::kOrdinaryCore && probe.rows == 64;
    seconds.push_back(device.seconds(probe) * (disturbed ? 1.8 : 1));
  }
  const Result<CostProfile> profile = fit_profile(g, probes, seconds);
  ASSERT_TRUE(profile.ok());
  EXPECT_NEAR(cost_of_rows(profile->ordinary_key_us, 64), kOrdinaryUs * 64, 1e-9);
}

TEST(FitProfile, TimesOfNothingAreRefused) {
  const std::vector<Probe> probes = probe_list(kDeepSeekV3, 2, 1e9);
  const Result<CostProfile> profile = fit_profile(kDeepSeekV3, probes, std::vector<double>(probes.size(), 0));
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().kind, ErrorKind::kNumeric);
}

TEST(ProbeList, SlicesKeepProbesSmall) {
  const double macs = 2e8;
  double round = 0;
  for (const Probe& probe : probe_list(kDeepSeekV3, 2, macs)) {
    EXPECT_LE(probe.heads, kDeepSeekV3.heads);
    EXPECT_EQ(probe.heads % 2, 0) << "threads share a slice evenly";
    round += probe_macs(kDeepSeekV3, probe);
    if (probe.part == Part::kAbsorbedCore) {
      EXPECT_LE(probe_macs(kDeepSeekV3, probe), 12 * macs) << "two groups of rows a thread";
      EXPECT_LE(probe.keys, 4096);
    } else {
      EXPECT_LE(probe_macs(kDeepSeekV3, probe), 4 * macs);
      EXPECT_LE(probe.keys, 256);
    }
  }
  EXPECT_LE(round, 80 * macs) << "0.4 s where a probe of so many takes 5 ms: several rounds fit into the time";
}

TEST(ProbeList, TheCoreMeetsMoreKeysThanACacheHolds) {
  int cores = 0;
  for (const Probe& probe : probe_list(kDeepSeekV3, 2, 2e8)) {
    if (probe.part != Part::kAbsorbedCore || probe.keys <= kKeyBlock) continue;  // the small one
    ++cores;
    EXPECT_GE(probe.keys * kDeepSeekV3.latent_width() * 2, 4 << 20);
    if (probe.rows >= 4) {
      EXPECT_GE(probe.rows * probe.heads, 512) << "two groups of rows a thread";
    }
  }
  EXPECT_GT(cores, 0);
}

TEST(ProbeList, TakesAModelOfOneHeadOnManyThreads) {
  const MlaGeometry g{.heads = 1, .r = 8, .p = 0, .n = 4, .v = 4};
  for (const Probe& probe : probe_list(g, 64, 1e9)) EXPECT_EQ(probe.heads, 1);
}

TEST(MeasureProfile, EndsWithinItsTime) {
  for (const double slowdown : {1e-3, 1.0, 30.0}) {
    MadeUpDevice device{.geometry = kDeepSeekV3, .slowdown = slowdown};
    ASSERT_TRUE(measure(device).ok());
    EXPECT_LE(device.now, 2.0) << slowdown;
  }
}

TEST(MeasureProfile, MeasuresEveryProbeOnceWhateverTheTime) {
  MadeUpDevice device{.geometry = kDeepSeekV3};
  ASSERT_TRUE(measure(device, {.seconds = 0}).ok());
  EXPECT_EQ(device.runs, 2 + static_cast<int>(probe_list(kDeepSeekV3, 2, 1e9).size()));
}

TEST(MeasureProfile, ADisturbanceOfOneRoundIsForgotten) {
  MadeUpDevice quiet{.geometry = kDeepSeekV3}, disturbed{.geometry = kDeepSeekV3};
  const Result<CostProfile> expected = measure(quiet);
  const Result<CostProfile> found = measure_profile(
      kDeepSeekV3, 2,
      [&](const Probe& probe) -> Result<double> {
        disturbed.slowdown = disturbed.runs > 5 && disturbed.runs < 25 ? 3 : 1;
        return disturbed.seconds(probe);
      },
      [&] { return disturbed.now; });
  ASSERT_TRUE(expected.ok() && found.ok());
  EXPECT_NEAR(found->expand_row_us, expected->expand_row_us, 1e-9);
  EXPECT_NEAR(found->absorbed_key_us[3], expected->absorbed_key_us[3], 1e-9);
}

TEST(MeasureProfile, AnErrorOfTheDeviceEndsIt) {
  const Result<CostProfile> profile = measure_profile(
      kDeepSeekV3, 2,
      [](const Probe&) -> Result<double> {
        return Error{ErrorKind::kOutOfMemory, "no room"};
      },
      [] { return 0.0; });
  ASSERT_FALSE(profile.ok());
  EXPECT_EQ(profile.error().message, "no room");
}

}  // namespace
}  // namespace latte
