#include "measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "base/read_words.h"
#include "base/stopwatch.h"

namespace latte::bench {
namespace {

// A field of /proc/self/status in bytes.
std::size_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stoull(line.substr(field.size())) * 1024;
  }
  return 0;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

}  // namespace

double seconds_of(const std::function<void()>& work) {
  const Stopwatch clock;
  work();
  return clock.seconds();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double read_bandwidth(ThreadPool& pool, const std::vector<std::byte>& buffer, int repeats) {
  const int threads = pool.threads();
  const std::size_t words = buffer.size() / sizeof(std::uint64_t) / static_cast<std::size_t>(threads);
  const auto* data = reinterpret_cast<const std::uint64_t*>(buffer.data());
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads));
  const auto pass = [&] {
    pool.run(threads, [&](int task, int) {
      const auto at = static_cast<std::size_t>(task);
      sums[at] ^= read_words(data + at * words, words);
    });
  };
  pass();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_of(pass));
  if (sums[0] == 1) return 0;  // never: the sum is used, so the reads happen
  return static_cast<double>(words * sizeof(std::uint64_t)) * threads / median(seconds);
}

std::string machine_line(const BackendInfo& info) {
  return fmt::format("{}, {} {}, {} threads", processor_name(), info.name, info.isa, info.threads);
}

std::size_t peak_bytes() { return status_bytes("VmHWM:"); }
std::size_t resident_bytes() { return status_bytes("VmRSS:"); }
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace latte::bench
