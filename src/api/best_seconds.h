#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace latte {

/// Seconds of the fastest of several runs, which together take about `budget` seconds; at least one.
template <class Work>
double best_seconds(double budget, const Work& work) {
  using Clock = std::chrono::steady_clock;
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  do {
    const Clock::time_point start = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
  } while (spent < budget);
  return best;
}

}  // namespace latte
