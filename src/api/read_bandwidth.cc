#include "api/read_bandwidth.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/stopwatch.h"

namespace latte {
namespace {

/// Bytes asked for before they are needed, as products do: what the processor fetches by itself ends with every page,
/// and a loop that relies on it reads a third less.
constexpr std::size_t kAhead = 12288;

}  // namespace

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
    const std::uint64_t* words = words_ + static_cast<std::size_t>(part) * share_;
    std::array<std::uint64_t, 8> sum{};
    for (std::size_t i = 0; i + sum.size() <= share_; i += sum.size()) {
      __builtin_prefetch(reinterpret_cast<const char*>(words + i) + kAhead);  // past the end it does nothing
      for (std::size_t lane = 0; lane < sum.size(); ++lane) sum[lane] ^= words[i + lane];
    }
    // Kept where others see it, so that no compiler leaves the reading out.
    for (const std::uint64_t lane : sum) sums_[static_cast<std::size_t>(part)] ^= lane;
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
