#include "support/tolerance.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace latte::test {
namespace {

template <class T>
double relative_difference(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace

double max_relative_difference(std::span<const double> a, std::span<const double> b) {
  return relative_difference(a, b);
}
double max_relative_difference(std::span<const float> a, std::span<const float> b) { return relative_difference(a, b); }

}  // namespace latte::test
