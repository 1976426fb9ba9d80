#include <algorithm>
#include <cmath>

#include "device/reference/operations.h"
#include "device/reference/rows_of_doubles.h"

namespace latte::reference {

void embed(const EmbedArgs& args) {
  const MatRef out_LD = args.out_LD;
  expects(std::cmp_equal(args.ids.size(), out_LD.rows) && out_LD.cols == args.table_VD.cols,
          "embed writes one row of the table's width per id");
  for (std::int64_t l = 0; l < out_LD.rows; ++l) {
    const std::int32_t id = args.ids[l];
    expects(id >= 0 && id < args.table_VD.rows, "a token id lies inside the embedding table");
    double* out = double_row(out_LD, l);
    read_doubles(args.table_VD.at(id, 0), args.table_VD.dtype, out_LD.cols, out);
    for (std::int64_t i = 0; i < out_LD.cols; ++i) out[i] *= args.scale;
  }
}

void rms_norm(const RmsNormArgs& args) {
  const std::int64_t width = args.x.cols;
  expects(args.weight.cols == width && args.y.cols == width && args.y.rows == args.x.rows, "rms_norm keeps the shape");
  std::vector<double> weight(static_cast<std::size_t>(width));
  read_doubles(args.weight.data, args.weight.dtype, width, weight.data());
  for (std::int64_t l = 0; l < args.x.rows; ++l) {
    const double* x = double_row(args.x, l);
    double* y = double_row(args.y, l);
    double sum_of_squares = 0;
    for (std::int64_t i = 0; i < width; ++i) sum_of_squares += x[i] * x[i];
    const double inverse_rms = 1 / std::sqrt(sum_of_squares / static_cast<double>(width) + args.eps);
    for (std::int64_t i = 0; i < width; ++i) y[i] = x[i] * inverse_rms * weight[i];
  }
}

void rope(const RopeArgs& args) {
  const std::int64_t p = args.x.cols;
  const std::int64_t pairs = p / 2;
  expects(p % 2 == 0 && args.cos.cols == pairs && args.sin.cols == pairs, "rope turns p / 2 pairs");
  expects(args.x.rows == args.cos.rows * args.heads && args.sin.rows == args.cos.rows,
          "rope has an angle row per query");
  for (std::int64_t row = 0; row < args.x.rows; ++row) {
    double* x = double_row(args.x, row);
    const double* cos = double_row(args.cos, row / args.heads);
    const double* sin = double_row(args.sin, row / args.heads);
    for (std::int64_t i = 0; i < pairs; ++i) {
      double& even = args.style == RopeStyle::kInterleaved ? x[2 * i] : x[i];
      double& odd = args.style == RopeStyle::kInterleaved ? x[2 * i + 1] : x[pairs + i];
      const double turned_even = even * cos[i] - odd * sin[i];
      const double turned_odd = even * sin[i] + odd * cos[i];
      even = turned_even;
      odd = turned_odd;
    }
  }
}

void store_rows(const StoreRowsArgs& args) {
  for (std::int64_t l = 0; l < args.x.rows; ++l)
    write_cached(double_row(args.x, l), args.x.cols, args.rows, args.first_row + l, args.first_col);
}

}  // namespace latte::reference
