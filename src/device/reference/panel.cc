#include "device/reference/panel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "device/reference/rows_of_doubles.h"

namespace latte::reference {
namespace {

constexpr double kOperationsWorthAThread = 1e6;
constexpr int kMostThreads = 8;

}  // namespace

void Panel::take_rows(ConstMatRef w_NK, std::int64_t first) {
  values_Kp_.assign(static_cast<std::size_t>(w_NK.cols * kPanelWidth), 0.0);
  row_.resize(static_cast<std::size_t>(w_NK.cols));
  const std::int64_t taken = std::min(kPanelWidth, w_NK.rows - first);
  for (std::int64_t j = 0; j < taken; ++j) {
    read_doubles(w_NK.at(first + j, 0), w_NK.dtype, w_NK.cols, row_.data());
    for (std::int64_t k = 0; k < w_NK.cols; ++k) values_Kp_[static_cast<std::size_t>(k * kPanelWidth + j)] = row_[k];
  }
}

void Panel::take_cols(ConstMatRef w_KN, std::int64_t first) {
  values_Kp_.assign(static_cast<std::size_t>(w_KN.rows * kPanelWidth), 0.0);
  const std::int64_t taken = std::min(kPanelWidth, w_KN.cols - first);
  for (std::int64_t k = 0; k < w_KN.rows; ++k) {
    read_doubles(w_KN.at(k, first), w_KN.dtype, taken, values_Kp_.data() + k * kPanelWidth);
  }
}

void Panel::multiply(const double* x, std::int64_t count, double sums[kPanelWidth]) const {
  double partial[kPanelWidth] = {};
  const double* values = values_Kp_.data();
  for (std::int64_t k = 0; k < count; ++k) {
    for (std::int64_t j = 0; j < kPanelWidth; ++j) partial[j] += x[k] * values[k * kPanelWidth + j];
  }
  std::copy_n(partial, kPanelWidth, sums);
}

int thread_count() { return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads); }

void for_blocks(std::int64_t count, std::int64_t block, double operations,
                const std::function<void(std::int64_t begin, std::int64_t end)>& work) {
  std::atomic<std::int64_t> next{0};
  const auto take_blocks = [&] {
    for (std::int64_t begin = next.fetch_add(block); begin < count; begin = next.fetch_add(block)) {
      work(begin, std::min(begin + block, count));
    }
  };
  const std::int64_t blocks = (count + block - 1) / block;
  const std::int64_t threads =
      operations < kOperationsWorthAThread ? 1 : std::min<std::int64_t>(blocks, thread_count());
  std::vector<std::jthread> others;
  try {
    for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(take_blocks);
  } catch (const std::system_error&) {  // no more threads to be had: those there are share the work
  }
  take_blocks();
}

}  // namespace latte::reference
