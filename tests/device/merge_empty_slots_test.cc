#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "device/open_backend.h"
#include "support/device_memory.h"
#include "support/test_backends.h"

namespace latte {
namespace {

using test::DeviceMatrix;

// A slot whose chunk holds no key that a row may see is empty: its log-sum says so and its values are never read.
void expect_empty_slots_count_for_nothing(Backend& backend) {
  constexpr int kSlots = 11, kRows = 3, kWidth = 5;
  const DType dtype = backend.info().activation;
  const double nan = std::numeric_limits<double>::quiet_NaN(), empty = -std::numeric_limits<double>::infinity();
  // Row 0 has slot 4 alone, row 1 slots 0 and 9, row 2 none.
  std::vector<double> values(kSlots * kRows * kWidth, nan), sums(kSlots * kRows, empty);
  const auto set = [&](int slot, int row, double value, double sum) {
    std::fill_n(values.begin() + (slot * kRows + row) * kWidth, kWidth, value);
    sums[static_cast<std::size_t>(slot * kRows + row)] = sum;
  };
  set(4, 0, 7, 2), set(0, 1, 1, 3), set(9, 1, 5, 3);
  auto memory = backend.allocate(values.size() * dtype_bytes(dtype));
  auto sum_memory = backend.allocate(sums.size() * dtype_bytes(dtype));
  ASSERT_TRUE(memory.ok() && sum_memory.ok());
  backend.upload(values, {memory->data(), dtype, 1, static_cast<std::int64_t>(values.size()),
                          static_cast<std::int64_t>(values.size())});
  backend.upload(sums, {sum_memory->data(), dtype, 1, static_cast<std::int64_t>(sums.size()),
                        static_cast<std::int64_t>(sums.size())});
  const Partials partials{memory->data(), sum_memory->data(), dtype, kSlots, 1, kRows, kWidth};
  const DeviceMatrix out(backend, dtype, kRows, kWidth);
  const MergeRange ranges[] = {{0, kSlots, 0, kRows}};
  backend.merge_partials({partials, ranges, out.ref(), kWidth});
  for (int i = 0; i < kWidth; ++i) {
    EXPECT_NEAR(out.row(0)[i], 7, 1e-6);
    EXPECT_NEAR(out.row(1)[i], 3, 1e-6);
    EXPECT_EQ(out.row(2)[i], 0);
  }
}

TEST(MergeEmptySlots, CountForNothingOnTheReference) {
  auto backend = open_backend({.device = "reference"});
  ASSERT_TRUE(backend.ok());
  expect_empty_slots_count_for_nothing(**backend);
}

class MergeEmptySlotsOn : public ::testing::TestWithParam<test::CpuChoice> {};

TEST_P(MergeEmptySlotsOn, CountForNothing) {
  auto backend = test::open_cpu(GetParam());
  if (!backend.ok()) GTEST_SKIP() << backend.error().message;
  expect_empty_slots_count_for_nothing(**backend);
}

INSTANTIATE_TEST_SUITE_P(Cpu, MergeEmptySlotsOn, ::testing::ValuesIn(test::cpu_choices()),
                         [](const auto& choice) { return choice.param.name(); });

}  // namespace
}  // namespace latte
