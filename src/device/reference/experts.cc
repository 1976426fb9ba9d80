#include <algorithm>
#include <cmath>
#include <vector>

#include "device/reference/operations.h"
#include "device/reference/rows_of_doubles.h"

namespace latte::reference {
namespace {

/// Rows whose expert outputs are held at once.
constexpr std::int64_t kStepRows = 512;

/// An owned [rows, cols] matrix of doubles.
struct Doubles {
  Doubles(std::int64_t rows, std::int64_t cols)
      : values(static_cast<std::size_t>(rows * cols)), matrix{values.data(), DType::kF64, rows, cols, cols} {}

  std::vector<double> values;
  MatRef matrix;
};

double silu(double x) { return x / (1 + std::exp(-x)); }

/// down(silu(gate x) * up x), row by row.
Doubles gated(ConstMatRef x_LD, const ExpertWeights& weights) {
  Doubles hidden_LI(x_LD.rows, weights.gate.rows);
  Doubles up_LI(x_LD.rows, weights.up.rows);
  multiply(x_LD, weights.gate, hidden_LI.matrix, false);
  multiply(x_LD, weights.up, up_LI.matrix, false);
  for (std::size_t i = 0; i < hidden_LI.values.size(); ++i) {
    hidden_LI.values[i] = silu(hidden_LI.values[i]) * up_LI.values[i];
  }
  Doubles out_LD(x_LD.rows, weights.down.rows);
  multiply(hidden_LI.matrix, weights.down, out_LD.matrix, false);
  return out_LD;
}

void add(const double* x, double scale, double* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += scale * x[i];
}

/// The routed part of rows [begin, end).
void routed(const ExpertsArgs& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = args.x_LD.cols;
  const std::int64_t top_k = args.ids_Lk.cols;
  Doubles outputs_lkD((end - begin) * top_k, width);
  for (std::size_t e = 0; e < args.experts.size(); ++e) {
    std::vector<std::int64_t> places;  // l * top_k + k of each use of expert e
    for (std::int64_t place = 0; place < (end - begin) * top_k; ++place) {
      if (std::cmp_equal(args.ids_Lk(begin + place / top_k, place % top_k), e)) places.push_back(place);
    }
    if (places.empty()) continue;
    Doubles x_uD(static_cast<std::int64_t>(places.size()), width);
    for (std::size_t u = 0; u < places.size(); ++u) {
      std::copy_n(double_row(args.x_LD, begin + places[u] / top_k), width, double_row(x_uD.matrix, u));
    }
    const Doubles out_uD = gated(x_uD.matrix, args.experts[e]);
    for (std::size_t u = 0; u < places.size(); ++u) {
      std::copy_n(double_row(ConstMatRef(out_uD.matrix), u), width, double_row(outputs_lkD.matrix, places[u]));
    }
  }
  for (std::int64_t l = begin; l < end; ++l) {
    for (std::int64_t k = 0; k < top_k; ++k) {
      add(double_row(outputs_lkD.matrix, (l - begin) * top_k + k), double_row(args.weights_Lk, l)[k],
          double_row(args.y_LD, l), width);
    }
  }
}

}  // namespace

void experts(const ExpertsArgs& args) {
  for (std::int64_t l = 0; l < args.ids_Lk.rows; ++l) {
    for (std::int64_t k = 0; k < args.ids_Lk.cols; ++k) {
      expects(args.ids_Lk(l, k) >= 0 && std::cmp_less(args.ids_Lk(l, k), args.experts.size()),
              "a chosen expert exists");
    }
  }
  for (std::int64_t begin = 0; begin < args.x_LD.rows; begin += kStepRows) {
    routed(args, begin, std::min(begin + kStepRows, args.x_LD.rows));
  }
  if (args.shared != nullptr) ffn({args.step_class, args.x_LD, *args.shared, args.y_LD});
}

void ffn(const FfnArgs& args) {
  for (std::int64_t begin = 0; begin < args.x_LD.rows; begin += kStepRows) {
    const std::int64_t count = std::min(kStepRows, args.x_LD.rows - begin);
    const Doubles out_LD = gated(args.x_LD.rows_from(begin, count), args.weights);
    for (std::int64_t l = 0; l < count; ++l) {
      add(double_row(ConstMatRef(out_LD.matrix), l), 1, double_row(args.y_LD, begin + l), args.y_LD.cols);
    }
  }
}

}  // namespace latte::reference
