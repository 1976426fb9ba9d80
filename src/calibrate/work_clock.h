#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>

#include "backend/backend.h"

namespace latte {

/// How long a device works: on the processor the share of each thread in the process's processor time where that is
/// less than the time on the wall, so that what the system gave to others meanwhile does not count; elsewhere the time
/// on the wall.
class WorkClock {
 public:
  explicit WorkClock(const BackendInfo& device)
      : threads_(device.name == "cpu" && processor_clock_is_fine() ? device.threads : 0),
        wall_(wall_seconds()),
        work_(processor_seconds()) {}

  /// Seconds since it was made.
  double seconds() const {
    const double wall = wall_seconds() - wall_;
    return threads_ == 0 ? wall : std::min(wall, (processor_seconds() - work_) / threads_);
  }

  /// The steady clock.
  static double wall_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

 private:
  /// Whether the clock of the process's work moves within microseconds. Linux moves it by whole ticks, milliseconds,
  /// once that work is limited (ulimit -t).
  static bool processor_clock_is_fine() {
    static const bool kFine = [] {
      constexpr double kSpin = 2e-5;
      for (int i = 0; i < 8; ++i) {
        const double wall = wall_seconds(), work = processor_seconds();
        while (wall_seconds() - wall < kSpin) {
        }
        if (processor_seconds() <= work) return false;
      }
      return true;
    }();
    return kFine;
  }
  static double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  int threads_;
  double wall_;
  double work_;
};

}  // namespace latte
