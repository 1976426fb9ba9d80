// Four rows over long caches, at the lengths where chunks, length classes and page tables turn over.
#include <gtest/gtest.h>

#include "device/reference/reference_backend.h"
#include "plan/split_kv.h"
#include "support/attention_cases.h"
#include "support/test_backends.h"
#include "support/tolerance.h"

namespace latte::test {
namespace {

constexpr int kRows = 4;

AttendSpec long_spec(int heads, int r, int p, int length, DType keys) {
  return {.rows_per_query = heads,
          .key_width = r + p,
          .value_width = r,
          .keys = keys,
          .page_rows = 256,
          .leaf = leaf_length(length),
          .sequences = {{.identity = length, .first_query_pos = length - kRows, .queries = kRows}}};
}

void expect_agreement(const AttendSpec& spec) {
  const RowValues expected = attend(*make_reference_backend(), spec);
  Result<std::unique_ptr<Backend>> cpu = open_cpu({"auto", 2});
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  EXPECT_LE(max_relative_difference(attend(**cpu, spec), expected), kFloatAttention);
}

class LongAttention : public ::testing::TestWithParam<int> {};

TEST_P(LongAttention, AgreesWithTheReference) { expect_agreement(long_spec(8, 128, 32, GetParam(), DType::kBf16)); }

INSTANTIATE_TEST_SUITE_P(Lengths, LongAttention,
                         ::testing::Values(8191, 8192, 8193, 16383, 16384, 16385, 32767, 32768, 32769, 65535, 65536,
                                           65537));

TEST(LongAttentionWide, AgreesWithTheReference) { expect_agreement(long_spec(16, 512, 64, 8193, DType::kF32)); }

}  // namespace
}  // namespace latte::test
