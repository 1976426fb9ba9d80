#pragma once

#include <vector>

#include "base/stopwatch.h"
#include "latte/bench.h"

namespace latte {

/// Seconds that `work` takes; its error when it fails.
template <class Work>
Result<double> seconds_of(Work work) {
  const Stopwatch clock;
  if (Status done = work(); !done.ok()) return done.error();
  return clock.seconds();
}

double median(std::vector<double> values);

/// Fills the row's times and speeds from its samples.
void summarise(const std::vector<double>& seconds, double read_gbytes_per_second, BenchRow& row);

/// "tg128 @ d512"; without depth just "tg128".
std::string test_name(std::string_view kind, int rows, int depth);

/// Bytes to read for the roof: as much as the weights, so that a model which fits a cache is held to that cache,
/// between 16 MiB and 512 MiB.
std::size_t read_buffer_bytes(std::int64_t weight_bytes);

/// Bytes to read so that nothing else stays in the caches: twice the last level, between 64 MiB and 512 MiB; 512 MiB
/// where the system does not say how large that is.
std::size_t emptying_buffer_bytes();

}  // namespace latte
