#include "latte/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  for (const MissingThing& thing : report->missing) EXPECT_FALSE(thing.remedy.empty()) << thing.what;
}

TEST(Doctor, AskedInstructionSetIsTheOneMeasured) {
  const Result<DoctorReport> scalar = examine_machine({.isa = "scalar", .threads = 1});
  ASSERT_TRUE(scalar.ok()) << scalar.error().message;
  EXPECT_EQ(scalar->isa_used, "scalar");
  EXPECT_EQ(scalar->threads, 1);
  EXPECT_FALSE(examine_machine({.isa = "sse9", .threads = 1}).ok());
}

}  // namespace
}  // namespace latte::test
