// Products with grouped weights have the same bits on every instruction set: their sums are exact integers, and the f32
// part has one order.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/test_backends.h"

namespace latte::test {
namespace {

class GroupedBits : public ::testing::TestWithParam<CpuChoice> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> opened = open_cpu(GetParam());
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    backend_ = std::move(opened).value();
  }
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> scalar_ = open_cpu({"scalar", 1}).value();
};

TEST_P(GroupedBits, AreThoseOfTheScalarKernels) {
  int cases = 0;
  for (const OperationCase& one : operation_cases()) {
    if (!one.name.starts_with("matmul/q")) continue;
    if (GetParam().rounding().tiles && one.rows > kMaxDecodeRows) continue;  // multiplied in bf16
    EXPECT_EQ(run_case(*backend_, one), run_case(*scalar_, one)) << one.name;
    ++cases;
  }
  EXPECT_GT(cases, 50);
}

TEST_P(GroupedBits, AValueThatIsNotFiniteReachesItsRowAlone) {
  for (const DType dtype : {DType::kQ8, DType::kQ4}) {
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      const DeviceMatrix w(*backend_, dtype, 20, 70, random_matrix(1, 20, 70));
      DeviceMatrix x(*backend_, DType::kF32, 3, 70, random_matrix(2, 3, 70)), y(*backend_, DType::kF32, 3, 20);
      std::vector<double> row = random_row(2, 1, 70);
      row[69] = bad;
      x.write_row(1, row);
      const Projection projection{w.ref(), y.ref(), false};
      backend_->matmul({StepClass::kDecode, x.ref(), std::span(&projection, 1)});
      for (int n = 0; n < 20; ++n) {
        EXPECT_TRUE(std::isfinite(y.row(0)[n]));
        EXPECT_FALSE(std::isfinite(y.row(1)[n]));
        EXPECT_TRUE(std::isfinite(y.row(2)[n]));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, GroupedBits, ::testing::ValuesIn(cpu_choices()),
                         [](const ::testing::TestParamInfo<CpuChoice>& one) { return one.param.name(); });

}  // namespace
}  // namespace latte::test
