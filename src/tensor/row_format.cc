#include "tensor/row_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/half.h"
#include "tensor/signed_codes.h"

namespace latte {
namespace {

/// Writes the block's codes and gives its scale. Written so that compilers make vectors of the loops.
float write_block(const float* x, int count, std::byte* codes) {
  std::uint32_t most_bits = 0;
  for (int i = 0; i < count; ++i) most_bits = std::max(most_bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
  const float most = std::bit_cast<float>(most_bits);
  const bool finite = most_bits < 0x7f800000u;
  if (!finite || most < kLeastMagnitude) {
    std::memset(codes, 0, static_cast<std::size_t>(count));
    return finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = kMostCode / most;
  constexpr float kRound = 0x1.8p23f;  // adding it leaves the nearest integer, ties to even, in the low bits
  for (int i = 0; i < count; ++i) codes[i] = std::byte(std::bit_cast<std::uint32_t>(x[i] * inverse + kRound) & 0xffu);
  return most / kMostCode;
}

}  // namespace

void write_piece(std::span<const float> columns, const CodedPiece& piece, std::span<std::byte> to) {
  expects(std::cmp_equal(columns.size(), piece.width()) && std::cmp_equal(to.size(), piece.bytes()),
          "a piece is made of its columns");
  std::byte* codes = to.data() + piece.codes_at();
  for (int block = 0; block < piece.blocks(); ++block) {
    const int first = block * kRowBlock;
    const float scale = write_block(columns.data() + first, std::min(kRowBlock, piece.coded - first), codes + first);
    std::memcpy(to.data() + 4 * block, &scale, sizeof scale);
  }
  for (int i = 0; i < piece.exact; ++i) {
    const bf16 value = to_bf16(columns[static_cast<std::size_t>(piece.coded + i)]);
    std::memcpy(to.data() + piece.exact_at() + 2 * i, &value, sizeof value);
  }
  std::fill(to.begin() + piece.codes_at() + piece.coded, to.end(), std::byte{0});
}

void read_piece(std::span<const std::byte> from, const CodedPiece& piece, std::span<float> columns) {
  expects(std::cmp_equal(columns.size(), piece.width()) && std::cmp_equal(from.size(), piece.bytes()),
          "a piece holds its columns");
  for (int i = 0; i < piece.coded; ++i) {
    float scale;
    std::memcpy(&scale, from.data() + 4 * (i / kRowBlock), sizeof scale);
    const auto code = static_cast<std::int8_t>(from[static_cast<std::size_t>(piece.codes_at() + i)]);
    columns[static_cast<std::size_t>(i)] = scale * static_cast<float>(code);
  }
  for (int i = 0; i < piece.exact; ++i) {
    bf16 value;
    std::memcpy(&value, from.data() + piece.exact_at() + 2 * i, sizeof value);
    columns[static_cast<std::size_t>(piece.coded + i)] = to_float(value);
  }
}

}  // namespace latte
