#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latte {

/// Rows L of a step at which a profile holds the costs that depend on them.
inline constexpr std::array<int, 10> kProfileRows = {2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

/// A cost at each of kProfileRows, in microseconds.
using CostByRows = std::array<double, kProfileRows.size()>;

/// What the parts of a prompt step's attention take in one layer, all heads: measured on one device for one geometry
/// and one set of types (src/calibrate), read by choose_form. Microseconds; plain data.
struct CostProfile {
  double absorbed_us = 0;        ///< of every absorbed call, however small
  CostByRows fold_us{};          ///< L queries through W_UK and their contexts through W_UV
  CostByRows absorbed_key_us{};  ///< L rows of packed queries meet one cached row
  double materialised_us = 0;    ///< of every materialised step, however small
  double expand_row_us = 0;      ///< one cached row to the keys and values of every head
  CostByRows ordinary_key_us{};  ///< L rows of every head meet one expanded row
  friend constexpr bool operator==(const CostProfile&, const CostProfile&) = default;
};

/// The cost of `rows` rows: linear between the two counts around it, proportional past the last one.
constexpr double cost_of_rows(const CostByRows& costs, std::int64_t rows) {
  constexpr std::size_t kLast = kProfileRows.size() - 1;
  const auto wanted = static_cast<double>(rows);
  if (rows >= kProfileRows[kLast]) return costs[kLast] * wanted / kProfileRows[kLast];
  if (rows <= kProfileRows[0]) return costs[0];
  std::size_t above = 1;
  while (kProfileRows[above] < rows) ++above;
  const double low = kProfileRows[above - 1], high = kProfileRows[above];
  return costs[above - 1] + (costs[above] - costs[above - 1]) * (wanted - low) / (high - low);
}

/// Cached rows that a step's rows see, on average: row i of L sees T - L + 1 + i.
constexpr double mean_visible_rows(std::int64_t new_rows, std::int64_t rows_after_append) {
  return static_cast<double>(rows_after_append) - static_cast<double>(new_rows - 1) / 2;
}

/// What the profile expects of a step of L new rows that ends at T cached rows, in microseconds a layer.
constexpr double absorbed_us(const CostProfile& p, std::int64_t new_rows, std::int64_t rows_after_append) {
  return p.absorbed_us + cost_of_rows(p.fold_us, new_rows) +
         cost_of_rows(p.absorbed_key_us, new_rows) * mean_visible_rows(new_rows, rows_after_append);
}
constexpr double materialised_us(const CostProfile& p, std::int64_t new_rows, std::int64_t rows_after_append) {
  return p.materialised_us + p.expand_row_us * static_cast<double>(rows_after_append) +
         cost_of_rows(p.ordinary_key_us, new_rows) * mean_visible_rows(new_rows, rows_after_append);
}

/// How much less time the other form must promise before a profile overrules the formula: below that a measurement is
/// mostly noise.
inline constexpr double kProfileMargin = 1.03;

}  // namespace latte
