#pragma once

#include <chrono>

namespace latte {

/// Time on the wall since it was made. Processor time is no measure of a device's work: Linux adds up what other
/// threads of the process did once a tick, 4 ms late, so that the least of several short times is one that missed a
/// thread.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace latte
