#include "device/cpu/dot_rates.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/thread_pool.h"

namespace latte {
namespace {

constexpr double kPassSeconds = 1e-3;  // long beside the waking of a thread, short beside what else a machine does

/// One number a thread, each in a cache line of its own.
struct alignas(64) Kept {
  float value = 0;
};

/// Seconds until every thread has run the loop so often.
double pass(ThreadPool& pool, const DotLoop& loop, std::int64_t iterations, std::vector<Kept>& kept) {
  const auto start = std::chrono::steady_clock::now();
  pool.run(pool.threads(), [&](int part, int) { kept[static_cast<std::size_t>(part)].value = loop.run(iterations); });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double gops_of(ThreadPool& pool, const DotLoop& loop, double seconds) {
  std::vector<Kept> kept(static_cast<std::size_t>(pool.threads()));
  std::int64_t iterations = 256;
  double spent = 0, taken = 0;
  while ((taken = pass(pool, loop, iterations, kept)) < kPassSeconds) {
    spent += taken;
    iterations *= 2;
  }
  double best = taken;
  for (spent += taken; spent < seconds; spent += taken) {
    taken = pass(pool, loop, iterations, kept);
    best = std::min(best, taken);
  }
  return static_cast<double>(iterations) * loop.operations * pool.threads() / best * 1e-9;
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
