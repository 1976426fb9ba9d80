#include "device/cpu/product_launch.h"

#include <algorithm>

#include "tensor/grouped.h"

namespace latte {
namespace {

/// Multiply-adds below which waking the threads costs more than it saves.
constexpr std::int64_t kInlineWork = 40'000;
/// Streaming a weight costs about as much as multiplying it by this many rows.
constexpr std::int64_t kWeightCost = 4;
constexpr std::int64_t kBlockRows = 64;
/// Cost, as job_cost() counts, that keeps a thread busy for some microseconds: what threads take at a time.
constexpr std::int64_t kPieceCost = 600'000;

/// How a job is cut: `panels` of `panel` weight rows (columns for row sums) by `blocks` of `block` rows of x.
struct Grid {
  std::int64_t panel = 0, panels = 0;
  std::int64_t block = 0, blocks = 0;
  bool block_by_block = false;  ///< all panels of a block before the next block, so that its rows stay in the cache
};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Grid grid(std::int64_t m, std::int64_t n, std::int64_t panel, std::int64_t block) {
  return {panel, divide_up(n, panel), block, divide_up(m, block)};
}

/// Rows of `k` inputs, about `inputs` in all: a multiple of kBlockRows within bounds.
std::int64_t rows_of(std::int64_t inputs, std::int64_t k, std::int64_t fewest, std::int64_t most) {
  return std::clamp(inputs / std::max<std::int64_t>(k, 1) / kBlockRows * kBlockRows, fewest, most);
}

/// One row of x waits for memory: small panels divide evenly. More rows reuse a tall panel.
Grid product_grid(const ProductJob& job, std::int64_t block) {
  if (job.wide) {
    // The rows of a block fill half of a second-level cache; many of them repay the making of tiles.
    const std::int64_t rows = rows_of(std::int64_t{1} << 19, job.k, 128, 512);
    Grid cut = grid(job.m, job.n, job.w_up == nullptr ? kWideSums : kWideSums / 2, rows);
    cut.block_by_block = true;
    return cut;
  }
  if (is_grouped(job.w_type)) {
    // Codes that every panel reads anew: those of 512 rows, 1.4 MB of 2048 inputs, come a third slower.
    const std::int64_t rows = rows_of(std::int64_t{1} << 17, job.k, kBlockRows, 512);
    Grid cut = grid(job.m, job.n, kPanelOutputs, std::min(block, rows));
    cut.block_by_block = cut.blocks > 1;
    return cut;
  }
  return grid(job.m, job.n, job.m == 1 ? 8 : kPanelRows, block);
}

template <class Job>
std::int64_t job_cost(const Job& job) {
  return (job.m + kWeightCost) * job.n * job.k;
}

/// Rows of x of one task: all of them where the weight rows alone keep every thread busy.
template <class Job>
std::int64_t row_block(std::span<const Job> jobs, int threads) {
  std::int64_t n = 0;
  std::int64_t m = 1;
  for (const Job& job : jobs) {
    n += job.n;
    m = std::max(m, job.m);
  }
  constexpr std::int64_t kRowsPerThread = 96;
  return n >= kRowsPerThread * threads ? m : std::min(m, kBlockRows);
}

}  // namespace

/// Part i is the panels whose cost, counted along the jobs, starts in the i-th equal part of the whole.
template <class Job, class Panels>
void ProductLauncher::run_divided(std::span<const Job> jobs, const Panels& run_panel) {
  const int threads = pool_.threads();
  std::int64_t total = 0;
  std::int64_t work = 0;
  for (const Job& job : jobs) {
    total += job_cost(job);
    work += job.m * job.n * job.k;
  }
  const bool alone = threads == 1 || work < kInlineWork;
  const std::int64_t block = alone ? INT64_MAX / 2 : row_block(jobs, threads);
  const auto run_part = [&](std::int64_t part, std::int64_t parts, int thread) {
    const double begin = static_cast<double>(total) * static_cast<double>(part) / static_cast<double>(parts);
    const double end = static_cast<double>(total) * static_cast<double>(part + 1) / static_cast<double>(parts);
    double at = 0;
    for (const Job& job : jobs) {
      const double cost = static_cast<double>(job_cost(job));
      const double job_begin = at;
      at += cost;
      if (at <= begin || job.m == 0 || job.n == 0) continue;
      if (job_begin >= end) break;
      const Grid cut = run_panel.cut(job, block);
      const double units = static_cast<double>(cut.panels * cut.blocks);
      const auto unit_at = [&](double where) {
        const double unit = (where - job_begin) / cost * units;
        return std::clamp<std::int64_t>(static_cast<std::int64_t>(unit + 0.5), 0, cut.panels * cut.blocks);
      };
      const std::int64_t last = part + 1 == parts ? cut.panels * cut.blocks : unit_at(end);
      for (std::int64_t unit = cost > 0 ? unit_at(begin) : 0; unit < last; ++unit) {
        const std::int64_t panel = cut.block_by_block ? unit % cut.panels : unit / cut.blocks;
        const std::int64_t rows = cut.block_by_block ? unit / cut.panels : unit % cut.blocks;
        const std::int64_t n = panel * cut.panel;
        const std::int64_t m = rows * cut.block;
        const std::int64_t cols = std::min(cut.panel, job.n - n);
        // What follows the part is most often the thread's next: it is fetched ahead, too.
        const std::int64_t following = cut.block_by_block ? (panel + 1 < cut.panels ? cut.panel : 0) : job.n - n - cols;
        run_panel.run(job, m, std::min(cut.block, job.m - m), n, cols, following, thread);
      }
    }
  };
  if (alone) {
    run_part(0, 1, 0);
  } else {
    const auto parts =
        threads * static_cast<int>(std::clamp<std::int64_t>(total / threads / kPieceCost, 1, kShareCuts));
    pool_.run(parts, [&](int part, int thread) { run_part(part, parts, thread); });
  }
}

void ProductLauncher::run(std::span<const ProductJob> jobs) {
  std::int64_t most_rows = 0;
  for (const ProductJob& job : jobs) most_rows = std::max(most_rows, job.m);
  const std::int64_t floats = std::max(product_scratch_floats(kernels_, most_rows),
                                       kernels_.wide_product == nullptr ? 0 : wide_scratch_floats(most_rows));
  for (Scratch& scratch : scratch_) scratch.get<float>(floats);

  struct Panels {
    const KernelTable& kernels;
    std::vector<Scratch>& scratch;

    static Grid cut(const ProductJob& job, std::int64_t block) { return product_grid(job, block); }
    void run(const ProductJob& job, std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t cols,
             std::int64_t following, int thread) const {
      if (job.wide) return run_wide(job, m, rows, n, cols, following > 0, thread);
      if (is_grouped(job.w_type)) return run_grouped(job, m, rows, n, cols, following > 0);
      const std::int64_t w_bytes = job.w_type == DType::kBf16 ? 2 : 4;
      const std::int64_t x_bytes = job.x_bf16 ? 2 : 4;
      const auto* w = static_cast<const std::byte*>(job.w) + n * job.w_stride * w_bytes;
      const auto* w_up =
          job.w_up == nullptr ? nullptr : static_cast<const std::byte*>(job.w_up) + n * job.w_up_stride * w_bytes;
      kernels.product({.w = w,
                       .w_up = w_up,
                       .w_stride = job.w_stride,
                       .w_up_stride = job.w_up_stride,
                       .w_bf16 = job.w_type == DType::kBf16,
                       .x = static_cast<const std::byte*>(job.x) + m * job.x_stride * x_bytes,
                       .x_stride = job.x_stride,
                       .x_bf16 = job.x_bf16,
                       .y = job.y + m * job.y_stride + n,
                       .y_stride = job.y_stride,
                       .m = rows,
                       .n = cols,
                       .k = job.k,
                       .following = following,
                       .accumulate = job.accumulate,
                       .scratch = scratch[static_cast<std::size_t>(thread)].get<float>(0)});
    }
    void run_wide(const ProductJob& job, std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t cols,
                  bool followed, int thread) const {
      const bool grouped = is_grouped(job.w_type);
      const std::int64_t panel = grouped ? panel_bytes(job.w_type, job.k) : 0;
      const auto weight_at = [&](const void* w, std::int64_t stride) {
        const std::int64_t bytes = grouped ? n / kPanelOutputs * panel : job.w_by_input ? n * 2 : n * stride * 2;
        return static_cast<const std::byte*>(w) + bytes;
      };
      kernels.wide_product({.w = weight_at(job.w, job.w_stride),
                            .w_up = job.w_up == nullptr ? nullptr : weight_at(job.w_up, job.w_up_stride),
                            .type = job.w_by_input             ? WideWeight::kBf16ByInput
                                    : !grouped                 ? WideWeight::kBf16
                                    : job.w_type == DType::kQ4 ? WideWeight::kQ4
                                                               : WideWeight::kQ8,
                            .w_stride = job.w_stride,
                            .w_up_stride = job.w_up_stride,
                            .panel_bytes = panel,
                            .x = job.tiles + m / kWideTileRows * wide_row_tiles(job.k),
                            .y = job.y + m * job.y_stride + n,
                            .y_stride = job.y_stride,
                            .m = rows,
                            .n = cols,
                            .k = job.k,
                            .followed = followed,
                            .accumulate = job.accumulate,
                            .scratch = scratch[static_cast<std::size_t>(thread)].get<float>(0)});
    }
    void run_grouped(const ProductJob& job, std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t cols,
                     bool followed) const {
      const std::int64_t panel = panel_bytes(job.w_type, job.k);
      const std::int64_t offset = n / kPanelOutputs * panel;
      const auto* w_up = job.w_up == nullptr ? nullptr : static_cast<const std::byte*>(job.w_up) + offset;
      kernels.grouped_product(
          {.w = static_cast<const std::byte*>(job.w) + offset,
           .w_up = w_up,
           .four_bits = job.w_type == DType::kQ4,
           .x = job.codes.from(m),
           .y = job.y + m * job.y_stride + n,
           .y_stride = job.y_stride,
           .m = rows,
           .n = static_cast<int>(cols),
           .accumulate = job.accumulate,
           .following = followed ? static_cast<const std::byte*>(job.w) + offset + panel : nullptr});
    }
  };
  run_divided(jobs, Panels{kernels_, scratch_});
}

void ProductLauncher::run(std::span<const RowSumJob> jobs) {
  struct Panels {
    const KernelTable& kernels;

    Grid cut(const RowSumJob& job, std::int64_t block) const {
      return grid(job.m, job.n, 8 * kernels.vector_width, block);
    }
    void run(const RowSumJob& job, std::int64_t m, std::int64_t rows, std::int64_t n, std::int64_t cols, std::int64_t,
             int) const {
      kernels.row_sum({.w = static_cast<const std::byte*>(job.w) + n * (job.w_bf16 ? 2 : 4),
                       .w_stride = job.w_stride,
                       .w_bf16 = job.w_bf16,
                       .x = job.x + m * job.x_stride,
                       .x_stride = job.x_stride,
                       .y = job.y + m * job.y_stride + n,
                       .y_stride = job.y_stride,
                       .m = rows,
                       .n = cols,
                       .k = job.k});
    }
  };
  run_divided(jobs, Panels{kernels_});
}

}  // namespace latte
