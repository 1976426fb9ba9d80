#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace latte::reference {

/// Reads `count` elements of any float type as doubles; exact.
void read_doubles(const void* from, DType dtype, std::int64_t count, double* to);

/// Writes `count` doubles as elements of any float type, rounded to it (16-bit types by way of float).
void write_doubles(const double* from, std::int64_t count, void* to, DType dtype);

/// Reads the first `count` columns of a cached row's lane as doubles; exact.
void read_cached(const KeyRows& rows, std::int64_t t, std::int64_t lane, std::int64_t count, double* to);

/// Writes `count` doubles as a cached row's columns from `first_col` on, rounded to its type by way of float; of Q8
/// rows whole pieces.
void write_cached(const double* from, std::int64_t count, const KeyRows& rows, std::int64_t t, std::int64_t first_col);

/// Row i of an activation matrix, which is F64 on this backend.
inline const double* double_row(ConstMatRef m, std::int64_t i) {
  expects(m.dtype == DType::kF64, "activations of the reference backend are F64");
  return static_cast<const double*>(m.at(i, 0));
}
inline double* double_row(MatRef m, std::int64_t i) {
  expects(m.dtype == DType::kF64, "activations of the reference backend are F64");
  return static_cast<double*>(m.at(i, 0));
}

}  // namespace latte::reference
