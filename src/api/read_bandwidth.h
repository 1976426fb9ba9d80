#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"
#include "latte/error.h"

namespace latte {

/// Measures how fast as many threads as a device has read memory in a row, each its own part of one buffer of the
/// device's memory, so that it lies in pages like those of the caches.
class ReadBandwidth {
 public:
  /// Errors: no memory, no threads.
  static Result<ReadBandwidth> open(Backend& backend, std::size_t bytes);

  /// One pass over the buffer, in GB/s.
  double pass();
  /// The best of passes that together take about so long.
  double best_of(double seconds);

 private:
  ReadBandwidth() = default;

  std::unique_ptr<ThreadPool> pool_;
  DeviceBuffer memory_;
  std::uint64_t* words_ = nullptr;
  std::size_t share_ = 0;  // words of one thread
  std::vector<std::uint64_t> sums_;
};

}  // namespace latte
