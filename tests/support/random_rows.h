#pragma once

#include <cstdint>
#include <vector>

namespace latte::test {

/// A hash of two numbers with well-mixed bits.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index);

/// `count` values in (-scale, scale), each exactly a float: a function of seed and row alone, so that a row is the same
/// wherever it stands in a matrix.
std::vector<double> random_row(std::uint64_t seed, std::int64_t row, std::int64_t count, double scale = 1);

/// Rows 0 .. rows - 1 one after the other.
std::vector<double> random_matrix(std::uint64_t seed, std::int64_t rows, std::int64_t cols, double scale = 1);

/// 0 .. count - 1 in a seeded order.
std::vector<int> shuffled(std::uint64_t seed, int count);

}  // namespace latte::test
