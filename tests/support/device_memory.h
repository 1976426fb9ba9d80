#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"

namespace latte::test {

/// A matrix in device memory whose surroundings are NaN: the start is not aligned, rows are wider than they say, and
/// rows follow the last one. Reached through the backend alone, so that it serves every device.
class DeviceMatrix {
 public:
  DeviceMatrix() = default;
  /// All NaN until written.
  DeviceMatrix(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols);
  /// Filled with `values` [rows * cols], rounded to dtype. Grouped matrices have no rows to write or read later.
  DeviceMatrix(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols, std::span<const double> values);

  MatRef ref() const { return ref_; }
  MatView<std::int32_t> int_view() const;
  void write_row(std::int64_t row, std::span<const double> values);
  std::vector<double> row(std::int64_t row) const;
  /// Nothing outside the matrix has been written.
  bool poison_intact() const;

 private:
  void write_grouped(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols,
                     std::span<const double> values);
  std::vector<std::byte> bytes() const;

  Backend* backend_ = nullptr;
  DeviceBuffer buffer_;
  std::int64_t first_ = 0;
  MatRef ref_;
};

/// `count` weights [rows, cols] with a row of NaN between them.
class DeviceStack {
 public:
  DeviceStack() = default;
  /// Matrix h, row i holds random_row(seed, h * rows + i, cols, scale).
  DeviceStack(Backend& backend, DType dtype, int count, int rows, int cols, std::uint64_t seed, double scale);

  ConstStackRef ref() const { return ref_; }

 private:
  DeviceMatrix matrix_;
  ConstStackRef ref_;
};

/// Rows behind a page table in shuffled order, with NaN in the tail of the last page and between lanes and rows.
class DeviceRows {
 public:
  struct Shape {
    DType dtype = DType::kF32;
    int lanes = 1;
    int width = 0;                ///< of one lane
    int rows = 0;                 ///< that may be written
    int page_rows = 0;            ///< 0: one page holds all
    bool packed = false;          ///< no NaN between rows: row_stride is the lanes' widths
    std::uint64_t placement = 0;  ///< seed of the pages' order
    CodedPiece piece = {};        ///< of Q8 rows; a lane is whole pieces
  };

  DeviceRows() = default;
  DeviceRows(Backend& backend, const Shape& shape);

  /// A view that says `rows` rows exist.
  KeyRows ref(int rows) const;
  void write_row(int row, int lane, std::span<const double> values);
  std::vector<double> row(int row, int lane) const;

 private:
  KeyRows lane_ref(int lane) const;

  Backend* backend_ = nullptr;
  Shape shape_;
  DeviceBuffer buffer_;
  std::vector<void*> pages_;
  mutable std::vector<void*> lane_pages_;
  std::int64_t row_stride_ = 0;
  std::int64_t lane_stride_ = 0;
};

/// An allocation of `bytes` filled with 0xff, which is NaN in every float type.
DeviceBuffer poisoned_buffer(Backend& backend, std::size_t bytes);

}  // namespace latte::test
