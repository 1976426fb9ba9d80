#include "weights/finite_scan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/contract.h"
#include "base/fail.h"
#include "tensor/grouped.h"
#include "weights/mapped_pages.h"
#include "weights/matrix_list.h"

namespace latte {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kBlock = 1024;  // elements copied out of a mapping that may be misaligned

struct Piece {
  std::size_t item = 0;   // index of a tensor or matrix
  std::size_t begin = 0;  // bytes
  std::size_t bytes = 0;
};

/// True when any word has all bits of `exponent` set: NaN or infinity. Branch-free inside a block, so that it
/// vectorises.
template <class Word, Word kExponent>
bool any_exponent_full(const std::byte* data, std::size_t bytes) {
  Word block[kBlock];
  for (std::size_t at = 0; at < bytes; at += sizeof block) {
    const std::size_t count = std::min(sizeof block, bytes - at) / sizeof(Word);
    std::memcpy(block, data + at, count * sizeof(Word));
    Word full = 0;
    for (std::size_t i = 0; i < count; ++i) full |= static_cast<Word>((block[i] & kExponent) == kExponent);
    if (full != 0) return true;
  }
  return false;
}

bool any_beyond_float(const std::byte* data, std::size_t bytes) {
  double block[kBlock];
  for (std::size_t at = 0; at < bytes; at += sizeof block) {
    const std::size_t count = std::min(sizeof block, bytes - at) / sizeof(double);
    std::memcpy(block, data + at, count * sizeof(double));
    std::int64_t beyond = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = block[i];
      beyond |= static_cast<std::int64_t>(
          !(value <= std::numeric_limits<float>::max() && value >= -std::numeric_limits<float>::max()));
    }
    if (beyond != 0) return true;
  }
  return false;
}

bool any_not_finite(DType dtype, const std::byte* data, std::size_t bytes) {
  switch (dtype) {
    case DType::kF64:
      return any_beyond_float(data, bytes);
    case DType::kF32:
      return any_exponent_full<std::uint32_t, 0x7f800000u>(data, bytes);
    case DType::kF16:
      return any_exponent_full<std::uint16_t, std::uint16_t{0x7c00}>(data, bytes);
    case DType::kBf16:
      return any_exponent_full<std::uint16_t, std::uint16_t{0x7f80}>(data, bytes);
    default:
      expects(false, "only float tensors are scanned");
      return true;
  }
}

std::size_t first_not_finite(const TensorView& tensor) {
  const std::size_t size = dtype_bytes(tensor.dtype);
  const std::byte* data = static_cast<const std::byte*>(tensor.data);
  std::size_t element = 0;
  while (!any_not_finite(tensor.dtype, data + element * size, size)) ++element;
  return element;
}

/// Cuts `bytes` of an item into pieces of whole units.
void add_pieces(std::vector<Piece>& pieces, std::size_t item, std::size_t bytes, std::size_t unit) {
  const std::size_t most = std::max(kPieceBytes / unit, std::size_t{1}) * unit;
  for (std::size_t begin = 0; begin < bytes; begin += most)
    pieces.push_back({item, begin, std::min(most, bytes - begin)});
}

/// The lowest item of which bad(piece) is true, whichever thread finds it; `none` when there is none.
template <class Bad>
std::size_t lowest_bad_item(const std::vector<Piece>& pieces, std::size_t none, int threads, const Bad& bad) {
  expects(threads >= 1, "a scan has at least one thread");
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> lowest{none};
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      if (!bad(pieces[i])) continue;
      std::size_t seen = lowest.load();
      while (pieces[i].item < seen && !lowest.compare_exchange_weak(seen, pieces[i].item)) {
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
  } catch (const std::system_error&) {  // no more threads to be had: those there are share the work
  }
  work();
  for (std::thread& other : others) other.join();
  return lowest;
}

bool any_scale_not_finite(const std::byte* data, std::size_t bytes, std::size_t block) {
  for (std::size_t at = 0; at < bytes; at += block)
    if (any_not_finite(DType::kBf16, data + at, kBlockScaleBytes)) return true;
  return false;
}

}  // namespace

Status check_finite_weights(std::span<const TensorView* const> tensors, int threads, ScannedPages pages) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    add_pieces(pieces, i, tensors[i]->bytes, dtype_bytes(tensors[i]->dtype));
  const std::size_t worst = lowest_bad_item(pieces, tensors.size(), threads, [&](const Piece& piece) {
    const std::byte* data = static_cast<const std::byte*>(tensors[piece.item]->data) + piece.begin;
    const bool found = any_not_finite(tensors[piece.item]->dtype, data, piece.bytes);
    if (pages == ScannedPages::kGivenBack) give_back_pages(data, piece.bytes);
    return found;
  });
  if (worst == tensors.size()) return {};
  const TensorView& tensor = *tensors[worst];
  return fail(
      ErrorKind::kNumeric,
      "[load] tensor \"{}\": element {} is NaN or infinite, expected finite weights: the file is damaged, download it "
      "again; file {}",
      tensor.name, first_not_finite(tensor), tensor.file);
}

Status check_finite_scales(const ModelWeights& weights, int threads) {
  const std::vector<GroupedMatrix> matrices = grouped_matrices(weights);
  const auto block_of = [&](std::size_t i) { return static_cast<std::size_t>(block_bytes(matrices[i].matrix.dtype)); };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const ConstMatRef& m = matrices[i].matrix;
    add_pieces(pieces, i, static_cast<std::size_t>(matrix_bytes(m.dtype, m.rows, m.cols)), block_of(i));
  }
  const std::size_t worst = lowest_bad_item(pieces, matrices.size(), threads, [&](const Piece& piece) {
    const auto* data = static_cast<const std::byte*>(matrices[piece.item].matrix.data) + piece.begin;
    return any_scale_not_finite(data, piece.bytes, block_of(piece.item));
  });
  if (worst == matrices.size()) return {};
  const TensorView* stored = weights.checkpoint.find(matrices[worst].name);
  return fail(ErrorKind::kNumeric,
              "[inspect] tensor \"{}\": a scale of its {} panels is NaN or infinite, expected finite ones: the file is "
              "damaged, run latte quantize again; file {}",
              matrices[worst].name, dtype_name(matrices[worst].matrix.dtype), stored == nullptr ? "" : stored->file);
}

Status check_stored_panels(const ModelWeights& weights, int threads) {
  std::set<std::string_view> dropped;
  for (const DroppedTensor& tensor : weights.report.dropped) dropped.insert(tensor.name);
  std::vector<const TensorView*> floats;
  for (const TensorView& tensor : weights.checkpoint.tensors())
    if (tensor.dtype != DType::kU8 && !dropped.contains(tensor.name)) floats.push_back(&tensor);
  if (Status finite = check_finite_weights(floats, threads); !finite.ok()) return finite;
  return check_finite_scales(weights, threads);
}

}  // namespace latte
