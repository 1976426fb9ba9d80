#include "api/bench_timing.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace latte {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

void summarise(const std::vector<double>& seconds, double read_gbytes_per_second, BenchRow& row) {
  double sum = 0, squares = 0;
  for (const double sample : seconds) sum += row.rows / sample;
  const auto count = static_cast<double>(seconds.size());
  row.tokens_per_second = sum / count;
  for (const double sample : seconds) {
    const double off = row.rows / sample - row.tokens_per_second;
    squares += off * off;
  }
  row.tokens_per_second_sd = seconds.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  row.median_seconds = median(seconds);
  row.min_seconds = *std::min_element(seconds.begin(), seconds.end());
  row.samples = static_cast<int>(seconds.size());
  row.gbytes_per_second = static_cast<double>(row.bytes_moved) / row.median_seconds * 1e-9;
  row.roof_share = read_gbytes_per_second > 0 ? row.gbytes_per_second / read_gbytes_per_second : 0;
}

std::string test_name(std::string_view kind, int rows, int depth) {
  return depth == 0 ? fmt::format("{}{}", kind, rows) : fmt::format("{}{} @ d{}", kind, rows, depth);
}

std::size_t read_buffer_bytes(std::int64_t weight_bytes) {
  return static_cast<std::size_t>(
      std::clamp<std::int64_t>(weight_bytes, std::int64_t{16} << 20, std::int64_t{512} << 20));
}

std::size_t emptying_buffer_bytes() {
  constexpr std::int64_t kFewest = std::int64_t{64} << 20, kMost = std::int64_t{512} << 20;
  const std::int64_t last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or less where it is not known
  return static_cast<std::size_t>(last_level > 0 ? std::clamp(2 * last_level, kFewest, kMost) : kMost);
}

}  // namespace latte
