#include "device/cpu/dot_rates.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "base/stopwatch.h"
#include "base/thread_pool.h"

namespace latte {
namespace {

constexpr double kRunSeconds = 2e-4;  // long beside a reading of the clock, short beside what else a machine does

double seconds_of(const DotLoop& loop, std::int64_t iterations, float& sum) {
  const Stopwatch clock;
  sum += loop.run(iterations);
  return clock.seconds();
}

/// What a thread found, in a cache line of its own.
struct alignas(64) Found {
  double least = std::numeric_limits<double>::infinity();  ///< seconds of a run
  float sum = 0;                                           ///< read by nobody, but the compiler cannot know
};

/// All threads run the loop again and again side by side, and each counts by its quickest run: where the system makes
/// one wait for a while, the others need not wait for it. More threads than processors take turns,
/// and add nothing.
double gops_of(ThreadPool& pool, const DotLoop& loop, double seconds) {
  std::int64_t iterations = 64;
  for (float sum = 0; seconds_of(loop, iterations, sum) < kRunSeconds;) iterations *= 2;
  std::vector<Found> found(static_cast<std::size_t>(pool.threads()));
  pool.run(pool.threads(), [&](int part, int) {
    Found& mine = found[static_cast<std::size_t>(part)];
    double spent = 0;
    do {
      const double taken = seconds_of(loop, iterations, mine.sum);
      mine.least = std::min(mine.least, taken);
      spent += taken;
    } while (spent < seconds);
  });
  double gops = 0;
  for (const Found& mine : found) gops += static_cast<double>(iterations) * loop.operations / mine.least * 1e-9;
  const auto processors = static_cast<double>(std::max(1u, std::thread::hardware_concurrency()));  // of this process
  return gops * std::min(1.0, processors / pool.threads());
}

}  // namespace

Result<std::vector<DotRate>> dot_rates_of(std::span<const KernelTable* const> sets, int threads, double seconds) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(threads);
  if (!pool.ok()) return pool.error();
  std::vector<DotRate> rates;
  for (const KernelTable* kernels : sets) {
    for (const DotLoop& loop : kernels->dot_loops) {
      if (loop.run == nullptr) continue;
      rates.push_back({.isa = kernels->isa,
                       .type = loop.type,
                       .instruction = loop.instruction,
                       .gops = gops_of(**pool, loop, seconds)});
    }
  }
  return rates;
}

}  // namespace latte
