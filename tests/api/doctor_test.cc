#include "latte/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace latte::test {
namespace {

TEST(Doctor, MeasuresAndSaysWhyASetIsNotUsed) {
  const Result<DoctorReport> report = examine_machine();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(std::count_if(report->isas.begin(), report->isas.end(), [](const IsaState& isa) { return isa.used; }), 1);
  for (const IsaState& isa : report->isas) {
    EXPECT_EQ(isa.used, isa.name == report->isa_used) << isa.name;
    EXPECT_EQ(isa.reason.empty(), isa.used) << isa.name;
    if (isa.used) {
      EXPECT_TRUE(isa.in_build && isa.in_processor) << isa.name;
    }
  }
  EXPECT_GE(report->threads, 1);
  EXPECT_EQ(report->busy, report->load_average > report->threads);
  EXPECT_GT(report->read_gbytes_per_second, 0.01);
  ASSERT_EQ(report->matmul.size(), 2u);
  for (const MatmulRate& rate : report->matmul) EXPECT_GT(rate.gflops, 0.01) << rate.type;
  for (const InstructionRate& rate : report->rates) {
    EXPECT_TRUE(std::isfinite(rate.gops) && rate.gops > 0.1) << rate.isa << " " << rate.instruction;
    EXPECT_DOUBLE_EQ(rate.gops_per_core * report->threads, rate.gops);
    EXPECT_FALSE(rate.instruction.empty());
  }
  for (const IsaState& isa : report->isas) {
    const bool runs = isa.in_build && isa.in_processor && isa.reason.find("arch_prctl") == std::string::npos;
    const auto own = [&](const InstructionRate& rate) { return rate.isa == isa.name; };
    EXPECT_EQ(std::any_of(report->rates.begin(), report->rates.end(), own), runs) << isa.name;
  }
  const auto says_missing = [&] {
    return std::any_of(report->missing.begin(), report->missing.end(),
                       [](const MissingThing& thing) { return thing.remedy.find("libdnnl") != std::string::npos; });
  };
  EXPECT_NE(report->onednn.installed, says_missing());
  EXPECT_EQ(report->onednn.installed, !report->onednn.version.empty());
  for (const OneDnnRate& rate : report->onednn.gemm) EXPECT_GT(rate.gops, 0.1) << rate.call;
  for (const MissingThing& thing : report->missing) EXPECT_FALSE(thing.remedy.empty()) << thing.what;
}

TEST(Doctor, AskedInstructionSetIsTheOneMeasured) {
  const Result<DoctorReport> scalar = examine_machine({.isa = "scalar", .threads = 1});
  ASSERT_TRUE(scalar.ok()) << scalar.error().message;
  EXPECT_EQ(scalar->isa_used, "scalar");
  EXPECT_EQ(scalar->isa_chosen_by, "asked");
  EXPECT_EQ(scalar->threads, 1);
  EXPECT_FALSE(examine_machine({.isa = "sse9", .threads = 1}).ok());
}

}  // namespace
}  // namespace latte::test
