#include "decode/run_report.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "support/sanitizers.h"

namespace latte::test {
namespace {

std::int64_t reported_peak() {
  GenerateResult result;
  report_machine({}, result);
  return result.peak_bytes;
}

TEST(RunReport, PeakMemoryIsWhatTheProcessHeldAtMost) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer takes memory of its own";
  const std::int64_t before = reported_peak();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LE(before, std::int64_t{usage.ru_maxrss} * 1024 * 17 / 16) << "it may hold what another program peaked at";
  constexpr std::int64_t kMore = std::int64_t{64} << 20;
  std::vector<char> memory(static_cast<std::size_t>(before + kMore));
  std::memset(memory.data(), 1, memory.size());
  EXPECT_GE(reported_peak(), before + kMore) << memory.back();
  EXPECT_LE(reported_peak(), 2 * before + 2 * kMore);
}

}  // namespace
}  // namespace latte::test
