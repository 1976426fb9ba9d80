#include <algorithm>

#include "device/reference/operations.h"
#include "device/reference/panel.h"
#include "device/reference/rows_of_doubles.h"
#include "tensor/grouped.h"

namespace latte::reference {
namespace {

double operations(std::int64_t rows, std::int64_t outputs, std::int64_t summed) {
  return static_cast<double>(rows) * static_cast<double>(outputs) * static_cast<double>(summed);
}

ConstMatRef head_weight(const ConstStackRef& w, std::int64_t h) {
  const auto* first = static_cast<const std::byte*>(w.data);
  const auto element_bytes = static_cast<std::int64_t>(dtype_bytes(w.dtype));
  return {first + h * w.stack_stride * element_bytes, w.dtype, w.rows, w.cols, w.row_stride};
}

/// y[first_out .. first_out + kPanelWidth) of one row, as far as the row goes.
void put(const double sums[kPanelWidth], double* y, std::int64_t first_out, std::int64_t width, bool accumulate) {
  const std::int64_t count = std::min(kPanelWidth, width - first_out);
  for (std::int64_t j = 0; j < count; ++j) y[first_out + j] = sums[j] + (accumulate ? y[first_out + j] : 0.0);
}

/// Rows w[h] c_i of the latent rows, for one head, into lane h of `out`.
void expand_head(const std::vector<double>& c_ir, std::int64_t r, ConstMatRef w_or, const KeyRows& out,
                 std::int64_t h) {
  const std::int64_t rows = static_cast<std::int64_t>(c_ir.size()) / std::max<std::int64_t>(r, 1);
  const auto element_bytes = static_cast<std::int64_t>(dtype_bytes(out.dtype));
  Panel panel;
  for (std::int64_t o = 0; o < w_or.rows; o += kPanelWidth) {
    panel.take_rows(w_or, o);
    for (std::int64_t i = 0; i < rows; ++i) {
      double sums[kPanelWidth];
      panel.multiply(c_ir.data() + i * r, r, sums);
      write_doubles(sums, std::min(kPanelWidth, w_or.rows - o),
                    static_cast<std::byte*>(out.row(i, h)) + o * element_bytes, out.dtype);
    }
  }
}

void add_bias(ConstMatRef bias_1N, MatRef y_LN) {
  expects(bias_1N.rows == 1 && bias_1N.cols == y_LN.cols, "a bias has an element for every output");
  std::vector<double> bias(static_cast<std::size_t>(y_LN.cols));
  read_doubles(bias_1N.data, bias_1N.dtype, y_LN.cols, bias.data());
  for (std::int64_t l = 0; l < y_LN.rows; ++l) {
    double* y = double_row(y_LN, l);
    for (std::int64_t j = 0; j < y_LN.cols; ++j) y[j] += bias[j];
  }
}

/// A row of x as a product with grouped weights rounds it (tensor/grouped.h).
struct CodedRow {
  CodedRow(const double* x, std::int64_t cols) : codes(group_count(cols) * kGroupInputs), scales(group_count(cols)) {
    std::vector<float> floats(x, x + cols);
    for (std::int64_t g = 0; g * kGroupInputs < cols; ++g) {
      const std::int64_t count = std::min<std::int64_t>(kGroupInputs, cols - g * kGroupInputs);
      scales[g] = quantise_group(std::span(floats).subspan(g * kGroupInputs, count), codes.data() + g * kGroupInputs);
    }
  }
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
};

/// Output n: the codes' sums are exact, the rest is in double.
double grouped_sum(ConstMatRef w, std::int64_t n, const CodedRow& x) {
  double total = 0;
  for (std::int64_t g = 0; g * kGroupInputs < w.cols; ++g) {
    double sum = 0, scale = 0;
    for (std::int64_t k = g * kGroupInputs; k < std::min(w.cols, (g + 1) * kGroupInputs); ++k) {
      const GroupedElement element = grouped_element(w, n, k);
      scale = element.scale;
      sum += element.code * x.codes[k];
    }
    total += sum * scale * x.scales[g];
  }
  return total;
}

void multiply_grouped(ConstMatRef x, ConstMatRef w, MatRef y, bool accumulate) {
  std::vector<CodedRow> rows;
  for (std::int64_t l = 0; l < x.rows; ++l) rows.emplace_back(double_row(x, l), x.cols);
  for_blocks(w.rows, kPanelOutputs, operations(x.rows, w.rows, w.cols), [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t l = 0; l < x.rows; ++l) {
      for (std::int64_t n = first; n < end; ++n) {
        double& to = double_row(y, l)[n];
        to = grouped_sum(w, n, rows[l]) + (accumulate ? to : 0.0);
      }
    }
  });
}

}  // namespace

void multiply(ConstMatRef x, ConstMatRef w, MatRef y, bool accumulate) {
  expects(x.cols == w.cols && y.cols == w.rows && y.rows == x.rows, "a product is y [L, N] = x [L, K] w [N, K]^T");
  if (is_grouped(w.dtype)) return multiply_grouped(x, w, y, accumulate);
  for_blocks(w.rows, kPanelWidth, operations(x.rows, w.rows, w.cols), [&](std::int64_t first, std::int64_t) {
    Panel panel;
    panel.take_rows(w, first);
    for (std::int64_t l = 0; l < x.rows; ++l) {
      double sums[kPanelWidth];
      panel.multiply(double_row(x, l), x.cols, sums);
      put(sums, double_row(y, l), first, y.cols, accumulate);
    }
  });
}

void matmul(const MatmulArgs& args) {
  for (const Projection& projection : args.projections) {
    multiply(args.x, projection.w, projection.y, projection.accumulate);
    if (!projection.bias.empty()) add_bias(projection.bias, projection.y);
  }
}

void head_matmul(const HeadMatmulArgs& args) {
  const bool over_cols = args.sum == HeadSum::kCols;
  const std::int64_t heads = args.w.count;
  const std::int64_t summed = over_cols ? args.w.cols : args.w.rows;
  const std::int64_t outputs = over_cols ? args.w.rows : args.w.cols;
  expects(args.x.cols == summed && args.y.cols == outputs, "head_matmul's widths are those of the weight");
  expects(args.y.rows == args.x.rows && args.x.rows % heads == 0, "head_matmul has a row per query and head");
  for_blocks(heads, 1, operations(args.x.rows, outputs, summed), [&](std::int64_t h, std::int64_t) {
    Panel panel;
    for (std::int64_t o = 0; o < outputs; o += kPanelWidth) {
      over_cols ? panel.take_rows(head_weight(args.w, h), o) : panel.take_cols(head_weight(args.w, h), o);
      for (std::int64_t row = h; row < args.x.rows; row += heads) {
        double sums[kPanelWidth];
        panel.multiply(double_row(args.x, row), summed, sums);
        put(sums, double_row(args.y, row), o, outputs, false);
      }
    }
  });
}

void expand_latent(const ExpandArgs& args) {
  const std::int64_t heads = args.w_uk_Hnr.count;
  const std::int64_t r = args.w_uk_Hnr.cols;
  const std::int64_t n = args.w_uk_Hnr.rows;
  const std::int64_t rows = args.end - args.begin;
  const std::int64_t p = args.rope_width;
  expects(args.w_uv_Hvr.count == heads && args.w_uv_Hvr.cols == r, "both up-projections expand c [r]");
  expects(p >= 0 && args.keys.row_stride >= n + p && args.latent.row_stride >= r + p,
          "latent rows hold c [r] and k_pe [p]");
  expects(args.begin >= 0 && rows >= 0 && args.end <= args.latent.rows, "expanded rows exist in the cache");
  std::vector<double> c_ir(static_cast<std::size_t>(rows * r));
  std::vector<double> k_pe_ip(static_cast<std::size_t>(rows * p));
  std::vector<double> latent(static_cast<std::size_t>(r + p));
  for (std::int64_t i = 0; i < rows; ++i) {
    read_cached(args.latent, args.begin + i, 0, r + p, latent.data());
    std::copy_n(latent.begin(), r, c_ir.begin() + i * r);
    std::copy_n(latent.begin() + r, p, k_pe_ip.begin() + i * p);
  }
  const auto key_bytes = static_cast<std::int64_t>(dtype_bytes(args.keys.dtype));
  for_blocks(heads, 1, operations(rows, heads * (n + args.w_uv_Hvr.rows), r), [&](std::int64_t h, std::int64_t) {
    expand_head(c_ir, r, head_weight(args.w_uk_Hnr, h), args.keys, h);
    expand_head(c_ir, r, head_weight(args.w_uv_Hvr, h), args.values, h);
    for (std::int64_t i = 0; i < rows; ++i) {
      write_doubles(k_pe_ip.data() + i * p, p, static_cast<std::byte*>(args.keys.row(i, h)) + n * key_bytes,
                    args.keys.dtype);
    }
  });
}

}  // namespace latte::reference
