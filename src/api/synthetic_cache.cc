#include "api/synthetic_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "base/random.h"
#include "tensor/half.h"

namespace latte {
namespace {

constexpr int kBlockRows = 256;  // written again and again

std::vector<float> random_rows(int rows, int width, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(width));
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const PhiloxCounter words = philox4x32({static_cast<std::uint32_t>(i), 0, 0, 1}, philox_key(seed));
    for (std::size_t j = i; j < std::min(i + 4, values.size()); ++j)
      values[j] = static_cast<float>(words[j - i]) * 0x1p-31f - 1;
  }
  for (int row = 0; row < rows; ++row) {
    const std::span<float> one = std::span(values).subspan(
        static_cast<std::size_t>(row) * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
    double squares = 0;
    for (const float value : one) squares += static_cast<double>(value) * value;
    const auto scale = static_cast<float>(1 / std::sqrt(squares / width + 1e-12));
    for (float& value : one) value *= scale;
  }
  return values;
}

std::vector<std::byte> pieces_of(const std::vector<float>& values, const CodedPiece& piece) {
  const auto width = static_cast<std::size_t>(piece.width()), piece_bytes = static_cast<std::size_t>(piece.bytes());
  std::vector<std::byte> bytes(values.size() / width * piece_bytes);
  for (std::size_t i = 0; i < values.size() / width; ++i) {
    write_piece(std::span(values).subspan(i * width, width), piece,
                std::span(bytes).subspan(i * piece_bytes, piece_bytes));
  }
  return bytes;
}

template <class Element, class Convert>
std::vector<std::byte> bytes_of(const std::vector<float>& values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * sizeof(Element));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Element element = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof(Element), &element, sizeof(Element));
  }
  return bytes;
}

std::vector<std::byte> stored(const std::vector<float>& values, const RowFormat& row) {
  if (row.dtype == DType::kQ8) return pieces_of(values, row.piece);
  if (row.dtype == DType::kF64) return bytes_of<double>(values, [](float value) { return static_cast<double>(value); });
  if (row.dtype == DType::kBf16) return bytes_of<bf16>(values, [](float value) { return to_bf16(value); });
  if (row.dtype == DType::kF16) return bytes_of<f16>(values, [](float value) { return to_f16(value); });
  expects(row.dtype == DType::kF32, "a synthetic cache is of a type that caches have");
  return bytes_of<float>(values, [](float value) { return value; });
}

}  // namespace

Status fill_with_random_rows(Backend& backend, LatentCache& cache, int length, std::uint64_t seed) {
  const int first = cache.length(), width = cache.row().width;
  if (length <= first) return {};
  if (Status room = cache.reserve(length); !room.ok()) return room;
  const std::vector<std::byte> block = stored(random_rows(kBlockRows, width, seed), cache.row());
  const std::size_t row_bytes = cache.row_bytes();
  for (int layer = 0; layer < cache.layers(); ++layer) {
    const KeyRows rows = cache.layer_rows(layer, length);
    for (int begin = first; begin < length; begin += kBlockRows) {
      const int end = std::min(length, begin + kBlockRows);
      backend.write_rows(std::span(block).first(row_bytes * static_cast<std::size_t>(end - begin)), rows, begin, end,
                         width);
    }
  }
  cache.append(length - first);
  return {};
}

}  // namespace latte
