#include <algorithm>
#include <cstring>

#include "device/cpu/cpu_backend.h"
#include "device/cpu/lane_rows.h"
#include "tensor/half.h"

// Operations on single rows: embedding, norm, rope, and writing the cache.

namespace latte {
namespace {

void rotate_interleaved(float* x, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void rotate_half_split(float* x, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = a * cos[i] - b * sin[i];
    x[i + half] = a * sin[i] + b * cos[i];
  }
}

/// Writes columns as elements or pieces of `rows`.
void store_columns(std::span<const float> x, const KeyRows& rows, std::byte* to) {
  if (rows.dtype == DType::kF32) {
    std::memcpy(to, x.data(), x.size_bytes());
  } else if (rows.dtype == DType::kBf16) {
    std::transform(x.begin(), x.end(), reinterpret_cast<bf16*>(to), to_bf16);
  } else if (rows.dtype == DType::kF16) {
    std::transform(x.begin(), x.end(), reinterpret_cast<f16*>(to), to_f16);
  } else {
    const auto width = static_cast<std::size_t>(rows.piece.width());
    const auto bytes = static_cast<std::size_t>(rows.piece.bytes());
    for (; !x.empty(); x = x.subspan(width), to += bytes) write_piece(x.first(width), rows.piece, {to, bytes});
  }
}

}  // namespace

void CpuBackend::embed(const EmbedArgs& args) {
  const ConstMatRef table = args.table_VD;
  expects(args.out_LD.dtype == DType::kF32 && args.out_LD.cols == table.cols,
          "embedding rows are F32 of the table's width");
  expects(table.dtype == DType::kF32 || table.dtype == DType::kBf16, "an embedding table is F32 or BF16");
  expects(args.out_LD.rows == static_cast<std::int64_t>(args.ids.size()), "one output row per id");
  const MatView<float> out = typed<float>(args.out_LD);
  for (std::int64_t i = 0; i < out.rows; ++i) {
    const std::int64_t id = args.ids[static_cast<std::size_t>(i)];
    expects(id >= 0 && id < table.rows, "token ids lie inside the embedding table");
    if (table.dtype == DType::kF32) {
      std::memcpy(out.row(i), table.at(id, 0), static_cast<std::size_t>(table.cols) * sizeof(float));
    } else {
      const auto* from = static_cast<const bf16*>(table.at(id, 0));
      for (std::int64_t j = 0; j < table.cols; ++j) out(i, j) = to_float(from[j]);
    }
    if (args.scale == 1) continue;
    for (std::int64_t j = 0; j < table.cols; ++j) out(i, j) *= static_cast<float>(args.scale);
  }
}

void CpuBackend::rms_norm(const RmsNormArgs& args) {
  expects(args.x.dtype == DType::kF32 && args.y.dtype == DType::kF32 && args.weight.dtype == DType::kF32,
          "a norm is F32");
  expects(args.x.rows == args.y.rows && args.x.cols == args.y.cols && args.weight.cols == args.x.cols,
          "a norm keeps shape");
  const MatView<const float> x = typed<const float>(args.x);
  const MatView<float> y = typed<float>(args.y);
  const auto* weight = static_cast<const float*>(args.weight.data);
  for_rows(x.rows, x.cols,
           [&](std::int64_t i, int) { kernels_.rms_norm(x.row(i), weight, y.row(i), x.cols, args.eps); });
}

void CpuBackend::rope(const RopeArgs& args) {
  expects(args.x.dtype == DType::kF32 && args.cos.dtype == DType::kF32 && args.sin.dtype == DType::kF32, "rope is F32");
  expects(args.x.rows == args.cos.rows * args.heads && args.x.cols == 2 * args.cos.cols,
          "rope turns pairs of every head");
  expects(args.sin.rows == args.cos.rows && args.sin.cols == args.cos.cols, "sines match cosines");
  const MatView<float> x = typed<float>(args.x);
  const MatView<const float> cos = typed<const float>(args.cos);
  const MatView<const float> sin = typed<const float>(args.sin);
  const auto rotate = args.style == RopeStyle::kInterleaved ? rotate_interleaved : rotate_half_split;
  for_rows(x.rows, x.cols, [&](std::int64_t i, int) {
    const std::int64_t l = i / args.heads;
    rotate(x.row(i), cos.row(l), sin.row(l), cos.cols);
  });
}

void CpuBackend::store_rows(const StoreRowsArgs& args) {
  expects(args.x.dtype == DType::kF32, "activations on cpu are F32");
  expects(is_cached_type(args.rows.dtype), "cached rows on cpu are F32, BF16, F16 or Q8");
  const MatView<const float> x = typed<const float>(args.x);
  const std::int64_t first_byte = args.rows.bytes(args.first_col);
  for_rows(x.rows, x.cols, [&](std::int64_t i, int) {
    std::byte* to = static_cast<std::byte*>(args.rows.row(args.first_row + i)) + first_byte;
    store_columns({x.row(i), static_cast<std::size_t>(x.cols)}, args.rows, to);
  });
}

}  // namespace latte
