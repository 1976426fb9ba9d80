#include "support/device_memory.h"

#include <algorithm>
#include <cstring>

#include "support/random_rows.h"
#include "tensor/grouped.h"
#include "tensor/half.h"

namespace latte::test {
namespace {

constexpr std::int64_t kFirstElement = 3;  // no vector starts aligned
constexpr std::int64_t kExtraColumns = 5;
constexpr std::int64_t kExtraRows = 2;
constexpr std::byte kPoison{0xff};

template <class T>
void append(std::vector<std::byte>& bytes, T value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof value);
}

std::vector<std::byte> encode(std::span<const double> values, DType dtype) {
  std::vector<std::byte> bytes;
  for (const double value : values) {
    switch (dtype) {
      case DType::kF64:
        append(bytes, value);
        break;
      case DType::kF32:
        append(bytes, static_cast<float>(value));
        break;
      case DType::kBf16:
        append(bytes, to_bf16(static_cast<float>(value)));
        break;
      case DType::kF16:
        append(bytes, to_f16(static_cast<float>(value)));
        break;
      case DType::kI32:
        append(bytes, static_cast<std::int32_t>(value));
        break;
      default:
        expects(false, "test memory holds F64, F32, BF16, F16 or I32");
    }
  }
  return bytes;
}

template <class T>
T element(const std::byte* bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof value, sizeof value);
  return value;
}

std::vector<double> decode(std::span<const std::byte> bytes, DType dtype) {
  std::vector<double> values(bytes.size() / dtype_bytes(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case DType::kF64:
        values[i] = element<double>(bytes.data(), i);
        break;
      case DType::kF32:
        values[i] = element<float>(bytes.data(), i);
        break;
      case DType::kBf16:
        values[i] = to_float(element<bf16>(bytes.data(), i));
        break;
      case DType::kF16:
        values[i] = to_float(element<f16>(bytes.data(), i));
        break;
      case DType::kI32:
        values[i] = element<std::int32_t>(bytes.data(), i);
        break;
      default:
        expects(false, "test memory holds F64, F32, BF16, F16 or I32");
    }
  }
  return values;
}

/// Columns as they are stored in rows like these.
std::vector<std::byte> encode(std::span<const double> values, const KeyRows& rows) {
  if (rows.dtype != DType::kQ8) return encode(values, rows.dtype);
  const std::vector<float> columns(values.begin(), values.end());
  const auto width = static_cast<std::size_t>(rows.piece.width()), bytes = static_cast<std::size_t>(rows.piece.bytes());
  std::vector<std::byte> all(values.size() / width * bytes);
  for (std::size_t i = 0; i < values.size() / width; ++i) {
    write_piece(std::span(columns).subspan(i * width, width), rows.piece, std::span(all).subspan(i * bytes, bytes));
  }
  return all;
}

std::vector<double> decode(std::span<const std::byte> stored, const KeyRows& rows) {
  if (rows.dtype != DType::kQ8) return decode(stored, rows.dtype);
  const auto width = static_cast<std::size_t>(rows.piece.width()), bytes = static_cast<std::size_t>(rows.piece.bytes());
  std::vector<float> columns(stored.size() / bytes * width);
  for (std::size_t i = 0; i < stored.size() / bytes; ++i) {
    read_piece(stored.subspan(i * bytes, bytes), rows.piece, std::span(columns).subspan(i * width, width));
  }
  return {columns.begin(), columns.end()};
}

/// One row of `width` elements at `data`.
KeyRows one_row(void* const* data, DType dtype, std::int64_t width) {
  return {.pages = data, .page_rows = 1, .row_stride = width, .lane_stride = 0, .rows = 1, .dtype = dtype};
}

}  // namespace

DeviceBuffer poisoned_buffer(Backend& backend, std::size_t bytes) {
  Result<DeviceBuffer> buffer = backend.allocate(bytes);
  expects(buffer.ok(), "the device has memory for a test");
  const std::vector<std::byte> poison(bytes, kPoison);
  void* data = buffer->data();
  backend.write_rows(poison, one_row(&data, DType::kU8, static_cast<std::int64_t>(bytes)), 0, 1,
                     static_cast<int>(bytes));
  return std::move(buffer).value();
}

DeviceMatrix::DeviceMatrix(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols)
    : backend_(&backend), first_(kFirstElement * static_cast<std::int64_t>(dtype_bytes(dtype))) {
  const std::int64_t stride = cols + kExtraColumns;
  buffer_ = poisoned_buffer(backend, first_ + (rows + kExtraRows) * stride * dtype_bytes(dtype));
  ref_ = {static_cast<std::byte*>(buffer_.data()) + first_, dtype, rows, cols, stride};
}

DeviceMatrix::DeviceMatrix(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols,
                           std::span<const double> values)
    : DeviceMatrix(is_grouped(dtype) ? DeviceMatrix() : DeviceMatrix(backend, dtype, rows, cols)) {
  expects(std::cmp_equal(values.size(), rows * cols), "values fill the matrix");
  if (is_grouped(dtype)) {
    write_grouped(backend, dtype, rows, cols, values);
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) write_row(i, values.subspan(i * cols, cols));
}

void DeviceMatrix::write_grouped(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols,
                                 std::span<const double> values) {
  const std::vector<float> floats(values.begin(), values.end());
  std::vector<std::byte> bytes(static_cast<std::size_t>(matrix_bytes(dtype, rows, cols)));
  for (std::int64_t first = 0; first < rows; first += kPanelOutputs) {
    const int outputs = static_cast<int>(std::min<std::int64_t>(kPanelOutputs, rows - first));
    quantise_panel(std::span(floats).subspan(first * cols, outputs * cols), cols, outputs, cols, dtype,
                   bytes.data() + first / kPanelOutputs * panel_bytes(dtype, cols));
  }
  backend_ = &backend;
  buffer_ = poisoned_buffer(backend, bytes.size() + 64);
  void* data = buffer_.data();
  const int width = static_cast<int>(bytes.size());
  backend.write_rows(bytes, one_row(&data, DType::kU8, width), 0, 1, width);
  ref_ = {data, dtype, rows, cols, cols};
}

MatView<std::int32_t> DeviceMatrix::int_view() const {
  expects(ref_.dtype == DType::kI32, "an integer view shows integers");
  return typed<std::int32_t>(ref_);
}

void DeviceMatrix::write_row(std::int64_t row, std::span<const double> values) {
  void* data = ref_.at(row, 0);
  const int width = static_cast<int>(values.size());
  backend_->write_rows(encode(values, ref_.dtype), one_row(&data, ref_.dtype, width), 0, 1, width);
}

std::vector<double> DeviceMatrix::row(std::int64_t row) const {
  void* data = ref_.at(row, 0);
  std::vector<std::byte> bytes(static_cast<std::size_t>(ref_.cols) * dtype_bytes(ref_.dtype));
  backend_->read_rows(one_row(&data, ref_.dtype, ref_.cols), 0, 1, static_cast<int>(ref_.cols), bytes);
  return decode(bytes, ref_.dtype);
}

std::vector<std::byte> DeviceMatrix::bytes() const {
  void* data = buffer_.data();
  std::vector<std::byte> bytes(buffer_.bytes());
  const int width = static_cast<int>(bytes.size());
  backend_->read_rows(one_row(&data, DType::kU8, width), 0, 1, width, bytes);
  return bytes;
}

bool DeviceMatrix::poison_intact() const {
  const std::vector<std::byte> all = bytes();
  const auto element_bytes = static_cast<std::int64_t>(dtype_bytes(ref_.dtype));
  for (std::int64_t i = 0; std::cmp_less(i, all.size()); ++i) {
    const std::int64_t offset = i - first_;
    const std::int64_t row = offset / (ref_.row_stride * element_bytes);
    const std::int64_t col = offset % (ref_.row_stride * element_bytes) / element_bytes;
    const bool inside = offset >= 0 && row < ref_.rows && col < ref_.cols;
    if (!inside && all[i] != kPoison) return false;
  }
  return true;
}

DeviceStack::DeviceStack(Backend& backend, DType dtype, int count, int rows, int cols, std::uint64_t seed, double scale)
    : matrix_(backend, dtype, static_cast<std::int64_t>(count) * (rows + 1), cols) {
  for (int h = 0; h < count; ++h) {
    for (int i = 0; i < rows; ++i) {
      const std::int64_t source = static_cast<std::int64_t>(h) * rows + i;
      matrix_.write_row(source + h, random_row(seed, source, cols, scale));
    }
  }
  const MatRef all = matrix_.ref();
  ref_ = {all.data, dtype, count, rows, cols, (rows + 1) * all.row_stride, all.row_stride};
}

DeviceRows::DeviceRows(Backend& backend, const Shape& shape) : backend_(&backend), shape_(shape) {
  const bool coded = shape.dtype == DType::kQ8;
  const std::int64_t gap = shape.packed ? 0 : coded ? shape.piece.width() : kFirstElement;
  lane_stride_ = shape.width + gap;
  row_stride_ = shape.lanes * lane_stride_ + gap;
  if (shape_.page_rows == 0) shape_.page_rows = shape.rows + 1;
  const int page_count = shape.rows / shape_.page_rows + 1;
  const auto page_bytes = static_cast<std::size_t>(row_bytes(shape.dtype, shape.piece, shape_.page_rows * row_stride_));
  buffer_ = poisoned_buffer(backend, page_bytes * page_count);
  for (const int place : shuffled(shape.placement, page_count)) {
    pages_.push_back(static_cast<std::byte*>(buffer_.data()) + place * page_bytes);
  }
}

KeyRows DeviceRows::ref(int rows) const {
  return {.pages = pages_.data(),
          .page_rows = shape_.page_rows,
          .row_stride = row_stride_,
          .lane_stride = lane_stride_,
          .rows = rows,
          .dtype = shape_.dtype,
          .piece = shape_.piece};
}

KeyRows DeviceRows::lane_ref(int lane) const {
  lane_pages_ = pages_;
  KeyRows rows = ref(shape_.rows);
  for (void*& page : lane_pages_) page = static_cast<std::byte*>(page) + rows.bytes(lane * lane_stride_);
  rows.pages = lane_pages_.data();
  return rows;
}

void DeviceRows::write_row(int row, int lane, std::span<const double> values) {
  expects(row < shape_.rows && std::cmp_equal(values.size(), shape_.width), "a written row exists");
  const KeyRows rows = lane_ref(lane);
  backend_->write_rows(encode(values, rows), rows, row, row + 1, shape_.width);
}

std::vector<double> DeviceRows::row(int row, int lane) const {
  const KeyRows rows = lane_ref(lane);
  std::vector<std::byte> bytes(static_cast<std::size_t>(rows.bytes(shape_.width)));
  backend_->read_rows(rows, row, row + 1, shape_.width, bytes);
  return decode(bytes, rows);
}

}  // namespace latte::test
