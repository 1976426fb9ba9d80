#include "api/read_bandwidth.h"

#include <algorithm>
#include <utility>

#include "base/read_words.h"
#include "base/stopwatch.h"

namespace latte {
Result<ReadBandwidth> ReadBandwidth::open(Backend& backend, std::size_t bytes) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(backend.info().threads);
  if (!pool.ok()) return pool.error();
  Result<DeviceBuffer> memory = backend.allocate(bytes);
  if (!memory.ok()) return memory.error();
  ReadBandwidth reading;
  reading.pool_ = std::move(*pool);
  reading.memory_ = std::move(*memory);
  reading.words_ = static_cast<std::uint64_t*>(reading.memory_.data());
  const int parts = reading.pool_->threads();
  reading.share_ = bytes / sizeof(std::uint64_t) / static_cast<std::size_t>(parts);
  reading.sums_.resize(static_cast<std::size_t>(parts));
  reading.pool_->run(parts, [&](int part, int) {
    const auto number = static_cast<std::uint64_t>(part);
    std::fill_n(reading.words_ + number * reading.share_, reading.share_, number);
  });
  return reading;
}

double ReadBandwidth::pass() {
  const Stopwatch clock;
  const int parts = pool_->threads();
  pool_->run(parts, [&](int part, int) {
    const auto at = static_cast<std::size_t>(part);
    sums_[at] ^= read_words(words_ + at * share_, share_);
  });
  const double seconds = clock.seconds();
  return static_cast<double>(share_ * sizeof(std::uint64_t)) * parts / seconds * 1e-9;
}

double ReadBandwidth::best_of(double seconds) {
  const Stopwatch clock;
  double best = 0;
  do {
    best = std::max(best, pass());
  } while (clock.seconds() < seconds);
  return best;
}

}  // namespace latte
