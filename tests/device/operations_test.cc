// Every case of every operation, on every instruction set of the cpu backend, against the double reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "device/reference/reference_backend.h"
#include "support/device_memory.h"
#include "support/operation_cases.h"
#include "support/random_rows.h"
#include "support/test_backends.h"

namespace latte::test {
namespace {

class Operations : public ::testing::TestWithParam<std::tuple<CpuChoice, std::string>> {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> opened = open_cpu(choice());
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    backend_ = std::move(opened).value();
  }
  const CpuChoice& choice() const { return std::get<0>(GetParam()); }
  const std::string& operation() const { return std::get<1>(GetParam()); }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> reference_ = make_reference_backend();
};

TEST_P(Operations, AgreeWithTheReference) {
  int cases = 0;
  for (const OperationCase& one : operation_cases()) {
    if (!one.name.starts_with(operation() + "/")) continue;
    const double difference = max_relative_difference(run_case(*backend_, one), run_case(*reference_, one));
    EXPECT_LE(difference, one.tolerance(choice().rounding())) << one.name;
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

std::string operations_name(const ::testing::TestParamInfo<std::tuple<CpuChoice, std::string>>& info) {
  return std::get<1>(info.param) + "_" + std::get<0>(info.param).name();
}

INSTANTIATE_TEST_SUITE_P(Cpu, Operations,
                         ::testing::Combine(::testing::ValuesIn(cpu_choices()),
                                            ::testing::Values("embed", "rms_norm", "rope", "store_rows", "matmul",
                                                              "head_matmul", "expand_latent", "attend", "route",
                                                              "experts", "ffn")),
                         operations_name);

TEST(OperationCases, HaveNamesOfTheirOwn) {
  std::vector<std::string> names;
  for (const OperationCase& one : operation_cases()) names.push_back(one.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  EXPECT_EQ(twice, names.end()) << *twice;
}

/// Moving data: the same claims for every backend.
class Memory : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "reference") {
      backend_ = make_reference_backend();
      return;
    }
    Result<std::unique_ptr<Backend>> opened = open_cpu({GetParam(), 2});
    if (!opened.ok()) GTEST_SKIP() << opened.error().message;
    backend_ = std::move(opened).value();
  }
  DeviceMatrix matrix(std::int64_t rows, std::int64_t cols) {
    return {*backend_, backend_->info().activation, rows, cols};
  }

  std::unique_ptr<Backend> backend_;
};

TEST_P(Memory, UploadAndDownloadKeepFloats) {
  const DeviceMatrix m = matrix(3, 7);
  const std::vector<double> values = random_matrix(1, 3, 7);
  backend_->upload(values, m.ref());
  std::vector<float> back(values.size());
  backend_->download(m.ref(), back);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(back[i], values[i]);
  EXPECT_TRUE(m.poison_intact());
}

TEST_P(Memory, CopyKeepsBitsAndStaysInside) {
  const DeviceMatrix from(*backend_, backend_->info().activation, 3, 7, random_matrix(2, 3, 7));
  const DeviceMatrix to = matrix(3, 7);
  backend_->copy(from.ref(), to.ref());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(to.row(i), from.row(i));
  EXPECT_TRUE(to.poison_intact());
}

TEST_P(Memory, RowsGoOutAndInAcrossPages) {
  for (const DType dtype : {DType::kF32, DType::kBf16, DType::kF16, DType::kQ8}) {
    const CodedPiece piece{7, 2};
    DeviceRows rows(*backend_,
                    {.dtype = dtype, .width = 9, .rows = 200, .page_rows = 64, .placement = 5, .piece = piece});
    for (int t = 0; t < 200; ++t) rows.write_row(t, 0, random_row(3, t, 9));
    std::vector<std::byte> bytes(static_cast<std::size_t>(70 * row_bytes(dtype, piece, 9)));
    backend_->read_rows(rows.ref(200), 60, 130, 9, bytes);
    DeviceRows other(*backend_,
                     {.dtype = dtype, .width = 9, .rows = 100, .page_rows = 32, .placement = 6, .piece = piece});
    backend_->write_rows(bytes, other.ref(100), 20, 90, 9);
    for (int t = 0; t < 70; ++t) ASSERT_EQ(other.row(20 + t, 0), rows.row(60 + t, 0)) << t;
    EXPECT_TRUE(std::isnan(other.row(19, 0)[0]));
    EXPECT_TRUE(std::isnan(other.row(90, 0)[0]));
  }
}

TEST_P(Memory, TheFirstRowThatIsNotFiniteIsFound) {
  for (const double bad :
       {std::nan(""), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    DeviceMatrix m(*backend_, backend_->info().activation, 5, 19, random_matrix(4, 5, 19));
    EXPECT_EQ(backend_->first_nonfinite_row(m.ref()), -1);
    for (const int row : {4, 2}) {
      std::vector<double> values = random_row(4, row, 19);
      values[18] = bad;
      m.write_row(row, values);
      EXPECT_EQ(backend_->first_nonfinite_row(m.ref()), row);
    }
  }
}

TEST_P(Memory, AnImpossibleAmountIsAnError) {
  const Result<DeviceBuffer> buffer = backend_->allocate(std::numeric_limits<std::size_t>::max() - 7);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().kind, ErrorKind::kOutOfMemory);
}

INSTANTIATE_TEST_SUITE_P(Every, Memory,
                         ::testing::Values("reference", "scalar", "avx2", "avx512", "avx512_vnni", "avx512_bf16",
                                           "amx"),
                         [](const ::testing::TestParamInfo<std::string>& one) { return one.param; });

}  // namespace
}  // namespace latte::test
