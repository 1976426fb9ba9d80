#include "calibrate/device_probes.h"

#include <gtest/gtest.h>

#include "device/open_backend.h"

namespace latte {
namespace {

constexpr MlaGeometry kSmall{.heads = 6, .r = 64, .p = 16, .n = 32, .v = 24};
constexpr MeasureLimits kShort{.seconds = 0.2, .probe_seconds = 1e-4, .most_rounds = 2};

TEST(DeviceProbes, EveryInstructionSetAndTypeGivesAProfile) {
  for (const InstructionSetReport& isa : instruction_set_reports()) {
    if (!isa.in_build || !isa.in_processor) continue;
    for (const DType type : {DType::kBf16, DType::kF32}) {
      const auto backend = open_backend({.device = "cpu", .isa = isa.name, .threads = 2, .compute = type});
      ASSERT_TRUE(backend.ok()) << backend.error().message;
      const Result<CostProfile> profile = calibrate(**backend, kSmall, {.cache = type, .weights = type}, kShort);
      ASSERT_TRUE(profile.ok()) << isa.name << ": " << profile.error().message;
      EXPECT_GT(absorbed_us(*profile, 64, 1024), absorbed_us(*profile, 64, 512)) << isa.name;
      EXPECT_GT(materialised_us(*profile, 64, 1024), materialised_us(*profile, 64, 512)) << isa.name;
    }
  }
}

TEST(DeviceProbes, TakesAGeometryWithoutRope) {
  const auto backend = open_backend({.device = "cpu", .threads = 1});
  ASSERT_TRUE(backend.ok());
  MlaGeometry g = kSmall;
  g.p = 0;
  EXPECT_TRUE(calibrate(**backend, g, {.cache = DType::kF32, .weights = DType::kF32}, kShort).ok());
}

TEST(DeviceProbes, ReferenceDeviceRunsThemToo) {
  const auto backend = open_backend({.device = "reference"});
  ASSERT_TRUE(backend.ok());
  DeviceProbes probes(**backend, kSmall, {.cache = DType::kF64, .weights = DType::kF32});
  for (const Part part : {Part::kFold, Part::kAbsorbedCore, Part::kExpansion, Part::kOrdinaryCore}) {
    const Result<double> seconds = probes.run({part, 2, 2, part == Part::kFold ? 0 : 64});
    ASSERT_TRUE(seconds.ok());
    EXPECT_GT(*seconds, 0);
  }
}

}  // namespace
}  // namespace latte
