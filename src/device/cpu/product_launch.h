#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "device/cpu/kernel_table.h"
#include "device/cpu/scratch.h"
#include "tensor/dtype.h"

namespace latte {

/// y [m, n] = x [m, k] w [n, k]^T of one weight matrix; with `w_up`, y = silu(w x) * (w_up x). A grouped weight is
/// multiplied with `codes`, any other with `x`; a wide product with `tiles`, and its bf16 weight may lie by inputs,
/// [k, n], and is then not gated.
struct ProductJob {
  const void* w = nullptr;
  const void* w_up = nullptr;
  DType w_type = DType::kF32;
  std::int64_t w_stride = 0;
  std::int64_t w_up_stride = 0;
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  bool x_bf16 = false;
  bool wide = false;  ///< by the kernel for many rows
  bool w_by_input = false;
  GroupedRows codes = {};
  const std::uint16_t* tiles = nullptr;  ///< as WidePanel::x
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0, n = 0, k = 0;
  bool accumulate = false;
};

/// y [m, n] = x [m, k] w [k, n].
struct RowSumJob {
  const void* w = nullptr;
  std::int64_t w_stride = 0;
  bool w_bf16 = false;
  const float* x = nullptr;
  std::int64_t x_stride = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0;
  std::int64_t m = 0, n = 0, k = 0;
};

/// Divides products over threads by panels of weight rows (and by rows of x where there are few panels): K is never
/// divided, so the division changes no bit. Small launches run in the caller.
class ProductLauncher {
 public:
  ProductLauncher(const KernelTable& kernels, ThreadPool& pool)
      : kernels_(kernels), pool_(pool), scratch_(static_cast<std::size_t>(pool.threads())) {}

  void run(std::span<const ProductJob> jobs);
  void run(std::span<const RowSumJob> jobs);

 private:
  template <class Job, class Panels>
  void run_divided(std::span<const Job> jobs, const Panels& run_panel);

  const KernelTable& kernels_;
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;  ///< one per thread
};

}  // namespace latte
