#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace latte::test {

/// Q(a, x), the regularised upper incomplete gamma function: the chance that a chi-square value of 2a degrees of
/// freedom exceeds 2x. By the power series below a + 1, by the continued fraction (Lentz) above.
inline double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a;
    double sum = term;
    for (double n = a + 1; term > sum * 1e-16; ++n) sum += term *= x / n;
    return 1 - scale * sum;
  }
  double b = x + 1 - a;
  double c = 1e300;
  double d = 1 / b;
  double fraction = d;
  for (int n = 1; n < 100000; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = 1 / (numerator * d + b);
    c = b + numerator / c;
    const double factor = c * d;
    fraction *= factor;
    if (std::abs(factor - 1) < 1e-15) break;
  }
  return scale * fraction;
}

/// Chance of counts at least this far from `probabilities`. Cells are merged, rarest first, until each expects 5 draws.
inline double chi_square_p(std::span<const std::int64_t> counts, std::span<const double> probabilities) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return probabilities[a] < probabilities[b]; });
  const auto draws = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  std::vector<std::pair<double, double>> cells;  // expected, observed
  std::pair<double, double> cell{0, 0};
  for (const std::size_t i : order) {
    if (probabilities[i] <= 0 && counts[i] > 0) return 0;
    cell.first += probabilities[i] * draws;
    cell.second += static_cast<double>(counts[i]);
    if (cell.first < 5) continue;
    cells.push_back(cell);
    cell = {0, 0};
  }
  if (cells.empty()) return 1;
  cells.back().first += cell.first;
  cells.back().second += cell.second;
  double statistic = 0;
  for (const auto& [expected, observed] : cells) statistic += (observed - expected) * (observed - expected) / expected;
  return cells.size() < 2 ? 1 : upper_gamma(0.5 * static_cast<double>(cells.size() - 1), 0.5 * statistic);
}

}  // namespace latte::test
