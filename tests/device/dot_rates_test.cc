#include "device/cpu/dot_rates.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "base/thread_pool.h"
#include "device/cpu/dispatch.h"
#include "device/open_backend.h"

namespace latte {
namespace {

/// Seconds that this thread worked for the loop: the least of several runs.
double seconds_of(const DotLoop& loop, std::int64_t iterations) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < 15; ++run) {
    timespec begin{}, end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    const float sum = loop.run(iterations);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    EXPECT_TRUE(std::isfinite(sum)) << loop.instruction;
    least = std::min(least, static_cast<double>(end.tv_sec - begin.tv_sec) +
                                static_cast<double>(end.tv_nsec - begin.tv_nsec) * 1e-9);
  }
  return least;
}

/// A clock that changes between two measurements is measured again; a loop that is wrong never shows the ratio.
constexpr int kAttempts = 20;

TEST(DotLoops, TwiceTheIterationsTakeTwiceTheTime) {
  for (const KernelTable* kernels : usable_kernels()) {
    for (const DotLoop& loop : kernels->dot_loops) {
      if (loop.run == nullptr) continue;
      const std::int64_t iterations = loop.type == DotType::kBf16 || loop.operations > 10000 ? 10000 : 40000;
      double ratio = 0;
      for (int attempt = 0; attempt < kAttempts && (ratio <= 1.5 || ratio >= 2.7); ++attempt)
        ratio = seconds_of(loop, 2 * iterations) / seconds_of(loop, iterations);
      EXPECT_GT(ratio, 1.5) << kernels->isa << " " << loop.instruction;
      EXPECT_LT(ratio, 2.7) << kernels->isa << " " << loop.instruction;
    }
  }
}

TEST(DotRates, EverySetHasAPlausibleRate) {
  const Result<std::vector<DotRate>> rates = measure_dot_rates(1, 0.005, DotRates::kAll);
  ASSERT_TRUE(rates.ok()) << rates.error().message;
  constexpr double kMostGigahertz = 7, kMostUnits = 4;
  for (const KernelTable* kernels : usable_kernels()) {
    const auto own = [&](const DotRate& rate) { return rate.isa == kernels->isa; };
    EXPECT_TRUE(std::any_of(rates->begin(), rates->end(), own)) << kernels->isa;
    for (const DotLoop& loop : kernels->dot_loops) {
      if (loop.run == nullptr) continue;
      const auto rate =
          std::find_if(rates->begin(), rates->end(), [&](const DotRate& r) { return own(r) && r.type == loop.type; });
      ASSERT_NE(rate, rates->end()) << loop.instruction;
      EXPECT_TRUE(std::isfinite(rate->gops) && rate->gops > 0.5) << kernels->isa << " " << loop.instruction;
      // More instructions than a processor can begin: the compiler left some out.
      const double wide = 2.0 * (loop.type == DotType::kF32 ? 1 : loop.type == DotType::kBf16 ? 2 : 4);
      const double most = kMostGigahertz * kMostUnits * wide * kernels->vector_width;
      if (std::string(kernels->isa) != "amx") {
        EXPECT_LT(rate->gops, most) << kernels->isa << " " << loop.instruction;
      }
      EXPECT_NE(rate->instruction, "");
    }
  }
}

TEST(DotRates, MoreThreadsThanProcessorsAddNothing) {
  const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = std::min(kMaxThreads, 16 * processors);
  const Result<std::vector<DotRate>> rates = measure_dot_rates(threads, 0.001, DotRates::kAll);
  ASSERT_TRUE(rates.ok()) << rates.error().message;
  const auto f32 = std::find_if(rates->begin(), rates->end(),
                                [](const DotRate& rate) { return rate.isa == "scalar" && rate.type == DotType::kF32; });
  ASSERT_NE(f32, rates->end());
  // Twice what a processor of 7 GHz with two units for four products and sums would do.
  EXPECT_LT(f32->gops, 112.0 * 2 * processors);
}

TEST(DotRates, WiderVectorsAreFaster) {
  double ratio = 0;
  for (int attempt = 0; attempt < kAttempts && ratio <= 1.5; ++attempt) {
    const Result<std::vector<DotRate>> rates = measure_dot_rates(1, 0.02, DotRates::kAll);
    ASSERT_TRUE(rates.ok());
    const auto f32_of = [&](std::string_view isa) {
      for (const DotRate& rate : *rates)
        if (rate.isa == isa && rate.type == DotType::kF32) return rate.gops;
      return 0.0;
    };
    if (f32_of("avx2") == 0) GTEST_SKIP() << "this processor has no AVX2";
    ratio = f32_of("avx2") / f32_of("scalar");
  }
  EXPECT_GT(ratio, 1.5);
}

TEST(DotRates, OfAChoiceLeaveScalarOut) {
  const Result<std::vector<DotRate>> rates = measure_dot_rates(1, 0.001, DotRates::kOfChoice);
  ASSERT_TRUE(rates.ok());
  EXPECT_FALSE(rates->empty());
  for (const DotRate& rate : *rates) EXPECT_NE(rate.isa, "scalar");
  EXPECT_FALSE(measure_dot_rates(-1, 0.001, DotRates::kAll).ok());
}

}  // namespace
}  // namespace latte
