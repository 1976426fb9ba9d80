#include "support/random_rows.h"

#include <numeric>
#include <utility>

namespace latte::test {

std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + index + 0x632be59bd9b4e019u;
  for (int round = 0; round < 2; ++round) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
  }
  return x;
}

std::vector<double> random_row(std::uint64_t seed, std::int64_t row, std::int64_t count, double scale) {
  const std::uint64_t row_seed = mix(seed, static_cast<std::uint64_t>(row));
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double unit = static_cast<double>(mix(row_seed, static_cast<std::uint64_t>(i)) >> 11) * 0x1p-53;
    values[i] = static_cast<float>((2 * unit - 1) * scale);
  }
  return values;
}

std::vector<double> random_matrix(std::uint64_t seed, std::int64_t rows, std::int64_t cols, double scale) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(rows * cols));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::vector<double> row = random_row(seed, i, cols, scale);
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

std::vector<int> shuffled(std::uint64_t seed, int count) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int i = count - 1; i > 0; --i) std::swap(order[i], order[mix(seed, i) % static_cast<std::uint64_t>(i + 1)]);
  return order;
}

}  // namespace latte::test
