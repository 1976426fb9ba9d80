#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "weights/matrix_list.h"

namespace latte {

/// A run of a matrix's panels: what is made at once.
struct PanelRun {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Makes panels of matrices on a pool of threads, which divide each run in a fixed way. One caller at a time.
class PanelQuantiser {
 public:
  /// The pool outlives this object.
  explicit PanelQuantiser(ThreadPool& pool) : pool_(pool), rows_(static_cast<std::size_t>(pool.threads())) {}

  /// A matrix as runs of some MiB of stored values, so that not all of them are in memory at once; each run has work
  /// for every thread.
  std::vector<PanelRun> runs_of(const QuantisedMatrix& matrix) const;
  /// Bytes of a run's panels.
  static std::size_t bytes_of(const QuantisedMatrix& matrix, const PanelRun& run);
  /// Writes bytes_of() bytes to `out`.
  void make(const QuantisedMatrix& matrix, const PanelRun& run, std::byte* out);
  /// Gives the pages of the run's stored values back; the matrix is a view of a mapped file.
  static void give_back(const QuantisedMatrix& matrix, const PanelRun& run);

 private:
  ThreadPool& pool_;
  std::vector<std::vector<float>> rows_;  // [thread] a panel's rows
};

}  // namespace latte
