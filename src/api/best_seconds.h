#pragma once

#include <algorithm>
#include <limits>

#include "base/stopwatch.h"

namespace latte {

/// Seconds of the fastest of several runs, which together take about `budget` seconds; at least one.
template <class Work>
double best_seconds(double budget, const Work& work) {
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  do {
    const Stopwatch clock;
    work();
    const double seconds = clock.seconds();
    best = std::min(best, seconds);
    spent += seconds;
  } while (spent < budget);
  return best;
}

}  // namespace latte
