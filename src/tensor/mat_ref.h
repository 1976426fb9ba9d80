#pragma once

#include <cstdint>
#include <type_traits>

#include "base/contract.h"
#include "tensor/dtype.h"

namespace latte {

/// A typed view [rows, cols] of memory somebody else owns; elements of a row are contiguous, strides are in elements.
template <class T>
struct MatView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;

  T* row(std::int64_t i) const { return data + i * row_stride; }
  T& operator()(std::int64_t i, std::int64_t j) const { return data[i * row_stride + j]; }
};

/// An untyped view [rows, cols] of device memory; elements of a row are contiguous, the stride is in elements.
/// A vector is a matrix of one row. `Void` is `void` or `const void`.
template <class Void>
struct BasicMatRef {
  using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;

  Void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t row_stride = 0;

  bool empty() const { return data == nullptr; }
  operator BasicMatRef<const void>() const { return {data, dtype, rows, cols, row_stride}; }  // NOLINT

  /// Rows [first, first + count).
  BasicMatRef rows_from(std::int64_t first, std::int64_t count) const {
    expects(first >= 0 && count >= 0 && first + count <= rows, "row range lies inside the matrix");
    return {at(first, 0), dtype, count, cols, row_stride};
  }
  /// Columns [first, first + count) of every row.
  BasicMatRef cols_from(std::int64_t first, std::int64_t count) const {
    expects(first >= 0 && count >= 0 && first + count <= cols, "column range lies inside the matrix");
    return {at(0, first), dtype, rows, count, row_stride};
  }
  /// The same memory as [rows * parts, cols / parts]; rows must be contiguous.
  BasicMatRef split_cols(std::int64_t parts) const {
    expects(row_stride == cols && cols % parts == 0, "a split matrix has contiguous rows of divisible width");
    return {data, dtype, rows * parts, cols / parts, cols / parts};
  }
  Void* at(std::int64_t row, std::int64_t col) const {
    expects(!is_grouped(dtype), "an element of a grouped matrix has no address");
    return static_cast<Byte*>(data) + (row * row_stride + col) * static_cast<std::int64_t>(dtype_bytes(dtype));
  }
};

using MatRef = BasicMatRef<void>;
using ConstMatRef = BasicMatRef<const void>;

/// `count` matrices [rows, cols] at a fixed distance: one weight per head.
struct ConstStackRef {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t count = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stack_stride = 0;
  std::int64_t row_stride = 0;
};

/// The typed view behind an untyped one; the caller has checked the dtype.
template <class T, class Void>
MatView<std::conditional_t<std::is_const_v<Void>, const T, T>> typed(BasicMatRef<Void> m) {
  using Element = std::conditional_t<std::is_const_v<Void>, const T, T>;
  return {static_cast<Element*>(m.data), m.rows, m.cols, m.row_stride};
}

}  // namespace latte
