#include "weights/panel_quantiser.h"

#include <algorithm>
#include <cstring>

#include "base/contract.h"
#include "tensor/grouped.h"
#include "tensor/half.h"
#include "weights/mapped_pages.h"

namespace latte {
namespace {

constexpr std::int64_t kRunBytes = std::int64_t{1} << 20;
constexpr std::int64_t kLeastPanelsOfAThread = 2;

/// Bytes of stored values; `rows` of the matrix.
std::int64_t stored_bytes(ConstMatRef m, std::int64_t rows) {
  return rows * m.row_stride * static_cast<std::int64_t>(dtype_bytes(m.dtype));
}

template <class Stored>
void read_as(const std::byte* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    Stored value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
    if constexpr (std::is_same_v<Stored, double>) {
      to[i] = static_cast<float>(value);
    } else {
      to[i] = to_float(value);
    }
  }
}

void read_row(ConstMatRef m, std::int64_t row, float* to) {
  const auto* from = static_cast<const std::byte*>(m.at(row, 0));
  switch (m.dtype) {
    case DType::kF32:
      std::memcpy(to, from, static_cast<std::size_t>(m.cols) * sizeof(float));
      return;
    case DType::kBf16:
      return read_as<bf16>(from, m.cols, to);
    case DType::kF16:
      return read_as<f16>(from, m.cols, to);
    case DType::kF64:
      return read_as<double>(from, m.cols, to);
    default:
      expects(false, "only float matrices are quantised");
  }
}

}  // namespace

std::vector<PanelRun> PanelQuantiser::runs_of(const QuantisedMatrix& matrix) const {
  const std::int64_t panels = panel_count(matrix.from.rows);
  const std::int64_t panel_bytes = std::max<std::int64_t>(1, stored_bytes(matrix.from, kPanelOutputs));
  const std::int64_t most = std::max(kLeastPanelsOfAThread * pool_.threads(), kRunBytes / panel_bytes);
  std::vector<PanelRun> runs;
  for (std::int64_t first = 0; first < panels; first += most) runs.push_back({first, std::min(most, panels - first)});
  return runs;
}

std::size_t PanelQuantiser::bytes_of(const QuantisedMatrix& matrix, const PanelRun& run) {
  return static_cast<std::size_t>(run.count * panel_bytes(matrix.type, matrix.from.cols));
}

void PanelQuantiser::make(const QuantisedMatrix& matrix, const PanelRun& run, std::byte* out) {
  const ConstMatRef& from = matrix.from;
  const std::int64_t step = panel_bytes(matrix.type, from.cols);
  pool_.run(static_cast<int>(run.count), [&](int task, int thread) {
    const std::int64_t first = (run.first + task) * kPanelOutputs;
    const int outputs = static_cast<int>(std::min<std::int64_t>(kPanelOutputs, from.rows - first));
    std::vector<float>& rows = rows_[static_cast<std::size_t>(thread)];
    rows.resize(static_cast<std::size_t>(kPanelOutputs * from.cols));
    for (int n = 0; n < outputs; ++n) read_row(from, first + n, rows.data() + n * from.cols);
    quantise_panel(rows, from.cols, outputs, from.cols, matrix.type, out + task * step);
  });
}

void PanelQuantiser::give_back(const QuantisedMatrix& matrix, const PanelRun& run) {
  const std::int64_t first = run.first * kPanelOutputs;
  const std::int64_t last = std::min(matrix.from.rows, (run.first + run.count) * kPanelOutputs);
  give_back_pages(matrix.from.at(first, 0), static_cast<std::size_t>(stored_bytes(matrix.from, last - first)));
}

}  // namespace latte
