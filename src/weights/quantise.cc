#include "weights/quantise.h"

#include <set>
#include <utility>
#include <vector>

#include "tensor/grouped.h"
#include "weights/matrix_list.h"
#include "weights/panel_quantiser.h"

namespace latte {
namespace {

/// Every format's matrices are whole cache lines, so that one behind the other starts on one.
static_assert(block_bytes(DType::kQ8) % 64 == 0 && block_bytes(DType::kQ4) % 64 == 0);

std::int64_t made_bytes(const QuantisedMatrix& matrix) {
  return matrix_bytes(matrix.type, matrix.from.rows, matrix.from.cols);
}

void write_report(const std::vector<QuantisedMatrix>& matrices, std::int64_t bytes, const void* embed,
                  LoadReport& report) {
  report.quantised_bytes = bytes;
  report.bytes += bytes;
  for (const QuantisedMatrix& matrix : matrices) {
    if (matrix.from.data != embed) report.bytes -= matrix_bytes(matrix.from.dtype, matrix.from.rows, matrix.from.cols);
  }
}

/// Frees converted tensors of which nothing but the grouped form is read from now on.
void free_copies(const std::vector<QuantisedMatrix>& matrices, ModelWeights& weights) {
  std::set<const void*> replaced;
  for (const QuantisedMatrix& matrix : matrices) replaced.insert(matrix.from.data);
  replaced.erase(weights.embed.data);
  std::erase_if(weights.copies, [&](const std::vector<float>& copy) {
    if (!replaced.contains(copy.data())) return false;
    weights.report.copied_bytes -= static_cast<std::int64_t>(copy.size() * sizeof(float));
    return true;
  });
}

}  // namespace

Status quantise_weights(ModelWeights& weights, const QuantisePlan& plan, int threads,
                        const QuantiseProgress& on_progress) {
  std::vector<QuantisedMatrix> matrices = matrices_to_quantise(weights, plan);
  if (matrices.empty()) return {};
  std::int64_t all = 0, done = 0;
  for (const QuantisedMatrix& matrix : matrices) all += made_bytes(matrix);
  Result<WeightArena> arena = WeightArena::make(static_cast<std::size_t>(all));
  if (!arena.ok()) return arena.error();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(threads);
  if (!pool.ok()) return pool.error();
  PanelQuantiser quantiser(**pool);
  std::byte* out = arena->data();
  for (QuantisedMatrix& matrix : matrices) {
    const ConstMatRef made{out, matrix.type, matrix.from.rows, matrix.from.cols, matrix.from.cols};
    const bool gives_back = matrix.from.data != weights.embed.data && weights.checkpoint.is_mapped(matrix.from.data);
    for (const PanelRun& run : quantiser.runs_of(matrix)) {
      quantiser.make(matrix, run, out);
      if (gives_back) PanelQuantiser::give_back(matrix, run);
      out += PanelQuantiser::bytes_of(matrix, run);
      done += static_cast<std::int64_t>(PanelQuantiser::bytes_of(matrix, run));
      if (on_progress) on_progress(done, all);
    }
    for (ConstMatRef* use : matrix.uses) *use = made;
  }
  write_report(matrices, all, weights.embed.data, weights.report);
  free_copies(matrices, weights);
  weights.made = std::move(*arena);
  return {};
}

}  // namespace latte
