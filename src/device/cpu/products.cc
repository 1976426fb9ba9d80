#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cpu/cpu_backend.h"
#include "device/cpu/lane_rows.h"
#include "tensor/grouped.h"

// Matrix products: each operation becomes a list of jobs for the launcher.

namespace latte {
namespace {

void expects_head_weight(DType dtype) {
  expects(dtype == DType::kF32 || dtype == DType::kBf16, "weights per head on cpu are F32 or BF16");
}

/// Puts the bias where the product will add: a row's bits do not depend on the rows beside it.
void put_bias(const Projection& projection) {
  expects(
      projection.bias.dtype == DType::kF32 && projection.bias.rows == 1 && projection.bias.cols == projection.y.cols,
      "a bias is F32 with an element for every output");
  const auto* bias = static_cast<const float*>(projection.bias.data);
  const MatView<float> y = typed<float>(projection.y);
  for (std::int64_t l = 0; l < y.rows; ++l) {
    for (std::int64_t j = 0; j < y.cols; ++j) y(l, j) = projection.accumulate ? y(l, j) + bias[j] : bias[j];
  }
}

}  // namespace

const std::uint16_t* CpuBackend::rounded(const float* x, std::int64_t x_stride, std::int64_t rows, std::int64_t cols) {
  auto* to = rounded_.get<std::uint16_t>(rows * cols);
  if (x_stride == cols) {  // one run of floats, which threads share however long its rows are
    constexpr std::int64_t kPiece = 4096;
    const std::int64_t total = rows * cols;
    for_rows((total + kPiece - 1) / kPiece, kPiece, [&](std::int64_t i, int) {
      kernels_.round_bf16(x + i * kPiece, to + i * kPiece, std::min(kPiece, total - i * kPiece));
    });
    return to;
  }
  for_rows(rows, cols, [&](std::int64_t i, int) { kernels_.round_bf16(x + i * x_stride, to + i * cols, cols); });
  return to;
}

const std::uint16_t* CpuBackend::list_tiles(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                                            std::uint16_t*& at) {
  const std::uint16_t* const first = at;
  for (std::int64_t row = 0; row < rows; row += kWideTileRows, at += wide_row_tiles(cols)) {
    const int count = static_cast<int>(std::min<std::int64_t>(kWideTileRows, rows - row));
    tile_rows_.push_back({x + row * stride, stride, count, cols, at});
  }
  return first;
}

void CpuBackend::make_tiles() {
  if (tile_rows_.empty()) return;
  for_rows(std::ssize(tile_rows_), kWideTileRows * tile_rows_.front().cols, [&](std::int64_t i, int) {
    const TileRows& tile = tile_rows_[static_cast<std::size_t>(i)];
    kernels_.wide_rows(tile.x, tile.stride, tile.rows, tile.cols, tile.to);
  });
  tile_rows_.clear();
}

GroupedRows CpuBackend::list_codes(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                                   std::int32_t*& at) {
  // Groups of a piece: threads divide the rows of one block, too, and hardly ever share a line of memory.
  constexpr std::int64_t kPiece = 8;
  const std::int64_t groups = group_count(cols);
  const GroupedRows listed{at, groups};
  for (std::int64_t row = 0; row < rows; row += kernels_.code_rows) {
    const std::int64_t count = std::min<std::int64_t>(kernels_.code_rows, rows - row);
    for (std::int64_t g = 0; g < groups; g += kPiece) {
      code_groups_.push_back({.x = x + row * stride + g * kGroupInputs,
                              .stride = stride,
                              .rows = static_cast<int>(count),
                              .n = cols - g * kGroupInputs,
                              .groups = std::min(kPiece, groups - g),
                              .to = at + g * kCodeWords * count});
    }
    at += code_words(count, cols);
  }
  return listed;
}

void CpuBackend::make_codes() {
  if (code_groups_.empty()) return;
  const RoundGroups& first = code_groups_.front();
  for_rows(std::ssize(code_groups_), first.rows * first.groups * kGroupInputs,
           [&](std::int64_t i, int) { kernels_.round_groups(code_groups_[static_cast<std::size_t>(i)]); });
  code_groups_.clear();
}

bool CpuBackend::wide(StepClass step_class, DType weight, std::int64_t count) const {
  // Fewer do not repay the making of tiles; codes are multiplied as such at several times the rate of floats.
  const std::int64_t fewest = is_grouped(weight) ? 28 : 16;
  return step_class == StepClass::kPrompt && count >= fewest && kernels_.wide_product != nullptr && multiply_bf16_ &&
         (weight == DType::kBf16 || is_grouped(weight));
}

void CpuBackend::add_form(ProductRows& rows, DType weight, bool wide, std::int64_t count, std::int64_t cols) {
  if (wide) {
    if (rows.tiles != nullptr) return;
    auto* at = tiles_.get<std::uint16_t>(wide_elements(count, cols));
    rows.tiles = list_tiles(rows.x, rows.stride, count, cols, at);
    make_tiles();
  } else if (rounds(weight)) {
    if (rows.bf16 != nullptr) return;
    rows.bf16 = rounded(rows.x, rows.stride, count, cols);
    rows.bf16_stride = cols;
  } else if (is_grouped(weight) && rows.codes.words == nullptr) {
    auto* at = codes_.get<std::int32_t>(code_words(count, cols));
    rows.codes = list_codes(rows.x, rows.stride, count, cols, at);
    make_codes();
  }
}

ProductJob CpuBackend::product_job(const ConstMatRef& w, const ConstMatRef* w_up, const ProductRows& rows, bool wide,
                                   std::int64_t first, std::int64_t count, MatView<float> y) const {
  expects(w.dtype == DType::kF32 || w.dtype == DType::kBf16 || is_grouped(w.dtype),
          "weights on cpu are F32, BF16, Q8 or Q4");
  const bool round = !wide && rounds(w.dtype);
  const bool grouped = !wide && is_grouped(w.dtype);
  return {.w = w.data,
          .w_up = w_up == nullptr ? nullptr : w_up->data,
          .w_type = w.dtype,
          .w_stride = w.row_stride,
          .w_up_stride = w_up == nullptr ? 0 : w_up->row_stride,
          .x = round ? static_cast<const void*>(rows.bf16 + first * rows.bf16_stride) : rows.x + first * rows.stride,
          .x_stride = round ? rows.bf16_stride : rows.stride,
          .x_bf16 = round,
          .wide = wide,
          .codes = grouped ? rows.codes : GroupedRows{},
          .tiles = wide ? rows.tiles : nullptr,
          .y = y.data,
          .y_stride = y.row_stride,
          .m = count,
          .n = w.rows,
          .k = w.cols};
}

void CpuBackend::matmul(const MatmulArgs& args) {
  const MatView<const float> x = typed<const float>(args.x);
  expects(args.x.dtype == DType::kF32, "activations on cpu are F32");
  jobs_.clear();
  ProductRows rows{.x = x.data, .stride = x.row_stride};
  for (const Projection& projection : args.projections) {
    const ConstMatRef& w = projection.w;
    expects(w.cols == x.cols && projection.y.rows == x.rows && projection.y.cols == w.rows, "a product's shapes fit");
    expects(projection.y.dtype == DType::kF32, "activations on cpu are F32");
    if (!projection.bias.empty()) put_bias(projection);
    const bool many = wide(args.step_class, w.dtype, x.rows);
    add_form(rows, w.dtype, many, x.rows, x.cols);
    jobs_.push_back(product_job(w, nullptr, rows, many, 0, x.rows, typed<float>(projection.y)));
    jobs_.back().accumulate = projection.accumulate || !projection.bias.empty();
  }
  products_.run(jobs_);
}

void CpuBackend::head_matmul(const HeadMatmulArgs& args) {
  const ConstStackRef& w = args.w;
  expects_head_weight(w.dtype);
  expects(args.x.dtype == DType::kF32 && args.y.dtype == DType::kF32, "activations on cpu are F32");
  expects(w.count > 0 && args.x.rows % w.count == 0 && args.y.rows == args.x.rows,
          "a head product has rows for every head");
  const bool sum_cols = args.sum == HeadSum::kCols;
  expects((sum_cols ? w.cols : w.rows) == args.x.cols && (sum_cols ? w.rows : w.cols) == args.y.cols,
          "a head product's shapes fit");
  const std::int64_t heads = w.count;
  const std::int64_t rows = args.x.rows / heads;
  const bool many = wide(args.step_class, w.dtype, rows);
  const bool products = sum_cols || many;
  const bool round = sum_cols && !many && rounds(w.dtype);
  const auto* x = static_cast<const float*>(args.x.data);
  const std::uint16_t* x_bf16 = round ? rounded(x, args.x.row_stride, args.x.rows, args.x.cols) : nullptr;
  auto* tiles = many ? tiles_.get<std::uint16_t>(heads * wide_elements(rows, args.x.cols)) : nullptr;
  auto* y = static_cast<float*>(args.y.data);
  jobs_.clear();
  row_sum_jobs_.clear();
  for (std::int64_t h = 0; h < heads; ++h) {
    const void* w_h =
        static_cast<const std::byte*>(w.data) + h * w.stack_stride * static_cast<std::int64_t>(dtype_bytes(w.dtype));
    if (products) {
      jobs_.push_back(
          {.w = w_h,
           .w_type = w.dtype,
           .w_stride = w.row_stride,
           .x = round ? static_cast<const void*>(x_bf16 + h * args.x.cols) : x + h * args.x.row_stride,
           .x_stride = heads * (round ? args.x.cols : args.x.row_stride),
           .x_bf16 = round,
           .wide = many,
           .w_by_input = !sum_cols,
           .tiles = many ? list_tiles(x + h * args.x.row_stride, heads * args.x.row_stride, rows, args.x.cols, tiles)
                         : nullptr,
           .y = y + h * args.y.row_stride,
           .y_stride = heads * args.y.row_stride,
           .m = rows,
           .n = args.y.cols,
           .k = args.x.cols});
    } else {
      row_sum_jobs_.push_back({.w = w_h,
                               .w_stride = w.row_stride,
                               .w_bf16 = w.dtype == DType::kBf16,
                               .x = x + h * args.x.row_stride,
                               .x_stride = heads * args.x.row_stride,
                               .y = y + h * args.y.row_stride,
                               .y_stride = heads * args.y.row_stride,
                               .m = rows,
                               .n = w.cols,
                               .k = w.rows});
    }
  }
  make_tiles();
  if (products) {
    products_.run(jobs_);
  } else {
    products_.run(row_sum_jobs_);
  }
}

void CpuBackend::expand_latent(const ExpandArgs& args) {
  const ConstStackRef& uk = args.w_uk_Hnr;
  const ConstStackRef& uv = args.w_uv_Hvr;
  expects_head_weight(uk.dtype);
  expects(uk.dtype == uv.dtype && uk.count == uv.count && uk.cols == uv.cols, "both expansions read the same latent");
  expects(args.keys.dtype == DType::kF32 && args.values.dtype == DType::kF32,
          "expanded keys and values on cpu are F32");
  expects(args.begin >= 0 && args.begin <= args.end && args.end <= args.latent.rows, "expanded rows exist");
  const std::int64_t rows = args.end - args.begin;
  const std::int64_t r = uk.cols;
  const std::int64_t n = uk.rows;
  const std::int64_t p = args.rope_width;
  expects(p >= 0 && args.latent.row_stride >= r + p && args.keys.row_stride >= n + p,
          "latent rows hold c [r] and k_pe [p], keys n + p columns");
  if (rows == 0) return;
  auto* latent = latent_.get<float>(rows * (r + p));
  const LaneRows cached = lane_rows(args.latent, 0);
  for_rows(rows, r + p, [&](std::int64_t i, int) {
    kernels_.widen_rows(cached, args.begin + i, 1, static_cast<int>(r + p), latent + i * (r + p));
  });
  const bool many = wide(StepClass::kPrompt, uk.dtype, rows);
  const bool round = !many && rounds(uk.dtype);
  const std::uint16_t* tiles = nullptr;
  if (many) {
    auto* at = tiles_.get<std::uint16_t>(wide_elements(rows, r));
    tiles = list_tiles(latent, r + p, rows, r, at);
    make_tiles();
  }
  const std::uint16_t* latent_bf16 = round ? rounded(latent, r + p, rows, r) : nullptr;
  jobs_.clear();
  for (std::int64_t h = 0; h < uk.count; ++h) {
    for (const auto& [w, to] : {std::pair(&uk, &args.keys), std::pair(&uv, &args.values)}) {
      const std::int64_t head_bytes = h * w->stack_stride * static_cast<std::int64_t>(dtype_bytes(w->dtype));
      jobs_.push_back({.w = static_cast<const std::byte*>(w->data) + head_bytes,
                       .w_type = w->dtype,
                       .w_stride = w->row_stride,
                       .x = round ? static_cast<const void*>(latent_bf16) : latent,
                       .x_stride = round ? r : r + p,
                       .x_bf16 = round,
                       .wide = many,
                       .tiles = tiles,
                       .y = static_cast<float*>(to->row(0, h)),
                       .y_stride = to->row_stride,
                       .m = rows,
                       .n = w->rows,
                       .k = r});
    }
  }
  products_.run(jobs_);
  for_rows(rows, p * uk.count, [&](std::int64_t i, int) {
    for (std::int64_t h = 0; h < uk.count; ++h) {
      std::memcpy(static_cast<float*>(args.keys.row(i, h)) + n, latent + i * (r + p) + r,
                  static_cast<std::size_t>(p) * sizeof(float));
    }
  });
}

}  // namespace latte
