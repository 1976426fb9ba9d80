#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/contract.h"
#include "tensor/dtype.h"

namespace latte {

// How cached rows lie in memory. Rows of a float type are their columns, one after another. Q8 rows are pieces of equal
// shape, each quantised from its own columns alone. A piece is
//   scales   of every block of kRowBlock coded columns (the last may be shorter) an f32
//   exact    its last columns as bf16: rope's part of a latent row, whose errors turn with the position
//   codes    of every coded column a signed byte, -127..127
// and zeros up to a multiple of 4 bytes; a coded column is scale * code. A latent row is one piece; a row of
// grouped-query attention has a piece for the keys of every head and one for its values.

inline constexpr int kRowBlock = 64;

/// The columns of one piece of a Q8 row.
struct CodedPiece {
  int coded = 0;  ///< leading columns that are codes
  int exact = 0;  ///< columns behind them, bf16

  constexpr int width() const { return coded + exact; }
  constexpr int blocks() const { return (coded + kRowBlock - 1) / kRowBlock; }
  /// Where the bf16 columns and the codes start, in bytes.
  constexpr int exact_at() const { return 4 * blocks(); }
  constexpr int codes_at() const { return exact_at() + 2 * exact; }
  constexpr int bytes() const { return (codes_at() + coded + 3) / 4 * 4; }

  bool operator==(const CodedPiece&) const = default;
};

/// Bytes of `cols` neighbouring columns of a cached row; of Q8 rows they are whole pieces.
constexpr std::int64_t row_bytes(DType dtype, const CodedPiece& piece, std::int64_t cols) {
  if (dtype != DType::kQ8) return cols * static_cast<std::int64_t>(dtype_bytes(dtype));
  expects(piece.width() > 0 && cols % piece.width() == 0, "columns of a Q8 row are whole pieces");
  return cols / piece.width() * piece.bytes();
}

/// What one layer keeps of one token.
struct RowFormat {
  int width = 0;  ///< columns
  DType dtype = DType::kF32;
  CodedPiece piece = {};  ///< of Q8 rows; the width is a multiple of its own

  constexpr std::int64_t bytes() const { return row_bytes(dtype, piece, width); }
  bool operator==(const RowFormat&) const = default;
};

/// Columns as a piece of `to.size()` = piece.bytes() bytes. A block's largest value takes code 127 or -127, the others
/// the nearest code, ties to even. A block that holds NaN or an infinity gets the scale NaN, and is NaN when it is
/// read.
void write_piece(std::span<const float> columns, const CodedPiece& piece, std::span<std::byte> to);

/// The columns of a piece, `columns.size()` = piece.width() of them.
void read_piece(std::span<const std::byte> from, const CodedPiece& piece, std::span<float> columns);

}  // namespace latte
