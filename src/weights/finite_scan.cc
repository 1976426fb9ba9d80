#include "weights/finite_scan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "base/contract.h"
#include "base/fail.h"
#include "weights/mapped_pages.h"

namespace latte {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kBlock = 1024;  // elements copied out of a mapping that may be misaligned

struct Piece {
  std::size_t tensor = 0;
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

}  // namespace

Status check_finite_weights(std::span<const TensorView* const> tensors, int threads, ScannedPages pages) {
  expects(threads >= 1, "a scan has at least one thread");
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t begin = 0; begin < tensors[i]->bytes; begin += kPieceBytes) {
      pieces.push_back({i, begin, std::min(kPieceBytes, tensors[i]->bytes - begin)});
    }
  }
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> worst{tensors.size()};  // the lowest index found, whichever thread finds it
  const auto work = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) {
      const TensorView& tensor = *tensors[pieces[i].tensor];
      const std::byte* data = static_cast<const std::byte*>(tensor.data) + pieces[i].begin;
      const bool found = any_not_finite(tensor.dtype, data, pieces[i].bytes);
      if (pages == ScannedPages::kGivenBack) give_back_pages(data, pieces[i].bytes);
      if (!found) continue;
      std::size_t seen = worst.load();
      while (pieces[i].tensor < seen && !worst.compare_exchange_weak(seen, pieces[i].tensor)) {
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

  if (worst == tensors.size()) return {};
  const TensorView& tensor = *tensors[worst];
  return fail(
      ErrorKind::kNumeric,
      "[load] tensor \"{}\": element {} is NaN or infinite, expected finite weights: the file is damaged, download it "
      "again; file {}",
      tensor.name, first_not_finite(tensor), tensor.file);
}

}  // namespace latte
