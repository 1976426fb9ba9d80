#include "device/reference/rows_of_doubles.h"

#include <algorithm>
#include <vector>

#include "tensor/half.h"

namespace latte::reference {

void read_doubles(const void* from, DType dtype, std::int64_t count, double* to) {
  switch (dtype) {
    case DType::kF64:
      std::copy_n(static_cast<const double*>(from), count, to);
      return;
    case DType::kF32:
      std::copy_n(static_cast<const float*>(from), count, to);
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(static_cast<const bf16*>(from)[i]);
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(static_cast<const f16*>(from)[i]);
      return;
    default:
      expects(false, "the reference backend reads F64, F32, BF16 and F16");
  }
}

void write_doubles(const double* from, std::int64_t count, void* to, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      std::copy_n(from, count, static_cast<double*>(to));
      return;
    case DType::kF32:
      for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = static_cast<float>(from[i]);
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) static_cast<bf16*>(to)[i] = to_bf16(static_cast<float>(from[i]));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) static_cast<f16*>(to)[i] = to_f16(static_cast<float>(from[i]));
      return;
    default:
      expects(false, "the reference backend writes F64, F32, BF16 and F16");
  }
}

void read_cached(const KeyRows& rows, std::int64_t t, std::int64_t lane, std::int64_t count, double* to) {
  const auto* row = static_cast<const std::byte*>(rows.row(t, lane));
  if (rows.dtype != DType::kQ8) return read_doubles(row, rows.dtype, count, to);
  const CodedPiece& piece = rows.piece;
  expects(count <= piece.width(), "a lane of Q8 rows is one piece");
  std::vector<float> columns(static_cast<std::size_t>(piece.width()));
  read_piece({row, static_cast<std::size_t>(piece.bytes())}, piece, columns);
  std::copy_n(columns.begin(), count, to);
}

void write_cached(const double* from, std::int64_t count, const KeyRows& rows, std::int64_t t, std::int64_t first_col) {
  auto* to = static_cast<std::byte*>(rows.row(t)) + rows.bytes(first_col);
  if (rows.dtype != DType::kQ8) return write_doubles(from, count, to, rows.dtype);
  const CodedPiece& piece = rows.piece;
  const std::span<std::byte> bytes(to, static_cast<std::size_t>(rows.bytes(count)));
  for (std::int64_t first = 0; first < count; first += piece.width()) {
    const std::vector<float> columns(from + first, from + first + piece.width());
    write_piece(columns, piece,
                bytes.subspan(static_cast<std::size_t>(rows.bytes(first)), static_cast<std::size_t>(piece.bytes())));
  }
}

}  // namespace latte::reference
