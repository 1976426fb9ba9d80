#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/mat_ref.h"

namespace latte::reference {

/// Outputs computed side by side. Every product of this backend is "a row of x times a panel": each output sums over k
/// in ascending order, and the compiler vectorises over the panel's columns.
inline constexpr std::int64_t kPanelWidth = 8;

/// A [K, kPanelWidth] block of doubles; columns past the matrix's edge are zero.
class Panel {
 public:
  /// Columns of the panel are rows [first, first + kPanelWidth) of w [N, K]: y[n] = sum_k w[n, k] x[k].
  void take_rows(ConstMatRef w_NK, std::int64_t first);
  /// Columns of the panel are columns [first, first + kPanelWidth) of w [K, N]: y[n] = sum_k w[k, n] x[k].
  void take_cols(ConstMatRef w_KN, std::int64_t first);

  /// Sums x[k] * panel[k, :] over k < count.
  void multiply(const double* x, std::int64_t count, double sums[kPanelWidth]) const;

 private:
  std::vector<double> values_Kp_;
  std::vector<double> row_;
};

/// Calls work(begin, end) for the blocks of `block` items that make up [0, count), on several threads when `operations`
/// is large. Blocks are independent of each other, so neither the thread count nor their order changes a result.
void for_blocks(std::int64_t count, std::int64_t block, double operations,
                const std::function<void(std::int64_t begin, std::int64_t end)>& work);

/// Threads that for_blocks uses at most.
int thread_count();

}  // namespace latte::reference
