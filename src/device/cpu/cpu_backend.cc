#include "device/cpu/cpu_backend.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/fail.h"
#include "device/cpu/dispatch.h"

namespace latte {
namespace {

constexpr std::size_t kAlignment = 64;
/// Buffers from this size on are offered to the system as huge pages: a step streams all of them.
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::byte* row_bytes(const KeyRows& rows, int t, int width) {
  expects(t >= 0 && width >= 0, "cache rows and widths are not negative");
  return static_cast<std::byte*>(rows.row(t));
}

}  // namespace

CpuBackend::CpuBackend(const KernelTable& kernels, std::unique_ptr<ThreadPool> pool, bool multiply_bf16)
    : info_{.name = "cpu",
            .isa = kernels.isa,
            .threads = pool->threads(),
            .activation = DType::kF32,
            .products = multiply_bf16 ? DType::kBf16 : DType::kF32,
            .cache_dtypes = {DType::kBf16, DType::kF32, DType::kF16, DType::kQ8},
            .bf16_rows = multiply_bf16 && kernels.bf16_group_rows > 0 ? std::vector<DType>{DType::kBf16, DType::kQ8}
                                                                      : std::vector<DType>{}},
      kernels_(kernels),
      pool_(std::move(pool)),
      multiply_bf16_(multiply_bf16),
      products_(kernels, *pool_),
      thread_scratch_(static_cast<std::size_t>(pool_->threads())),
      first_task_(static_cast<std::size_t>(pool_->threads()) + 1, 0) {}

Result<std::unique_ptr<Backend>> CpuBackend::open(const CpuOptions& options) {
  if (options.compute != DType::kF32 && options.compute != DType::kBf16) {
    return fail(ErrorKind::kInvalidInput,
                "compute type {} asked for, the cpu device has F32 and BF16; pass one of those",
                dtype_name(options.compute));
  }
  Result<const KernelTable*> kernels = find_kernels(options.isa);
  if (!kernels.ok()) return kernels.error();
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(options.threads);
  if (!pool.ok()) return pool.error();
  const bool can_multiply_bf16 = (*kernels)->bf16_products || (*kernels)->wide_product != nullptr;
  const bool multiply_bf16 = options.compute == DType::kBf16 && can_multiply_bf16;
  return std::unique_ptr<Backend>(new CpuBackend(**kernels, std::move(pool).value(), multiply_bf16));
}

Result<DeviceBuffer> CpuBackend::allocate(std::size_t bytes) {
  const std::size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const std::size_t rounded_bytes = bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* data = nullptr;
  if (rounded_bytes < bytes || posix_memalign(&data, alignment, rounded_bytes) != 0) {
    return fail(ErrorKind::kOutOfMemory,
                "{} bytes asked for, the system has no room; use a smaller context, batch or model", bytes);
  }
  if (alignment == kHugePage) (void)madvise(data, rounded_bytes, MADV_HUGEPAGE);  // a wish: without it all still works
  return DeviceBuffer(data, bytes, [](void* memory, std::size_t) { std::free(memory); });
}

void CpuBackend::upload(std::span<const double> x, MatRef to) {
  expects(to.dtype == DType::kF32, "activations on cpu are F32");
  expects(static_cast<std::int64_t>(x.size()) == to.rows * to.cols, "uploaded floats fill the matrix");
  const MatView<float> out = typed<float>(to);
  const double* from = x.data();
  for (std::int64_t i = 0; i < to.rows; ++i) {
    for (std::int64_t j = 0; j < to.cols; ++j) out(i, j) = static_cast<float>(*from++);
  }
}

void CpuBackend::download(ConstMatRef from, std::span<float> x) {
  expects(from.dtype == DType::kF32, "activations on cpu are F32");
  expects(static_cast<std::int64_t>(x.size()) == from.rows * from.cols, "downloaded floats fill the span");
  const MatView<const float> in = typed<const float>(from);
  for (std::int64_t i = 0; i < from.rows; ++i) {
    std::memcpy(x.data() + i * from.cols, in.row(i), static_cast<std::size_t>(from.cols) * sizeof(float));
  }
}

void CpuBackend::copy(ConstMatRef from, MatRef to) {
  expects(from.dtype == to.dtype && from.rows == to.rows && from.cols == to.cols, "a copy keeps dtype and shape");
  const std::size_t bytes = static_cast<std::size_t>(from.cols) * dtype_bytes(from.dtype);
  for (std::int64_t i = 0; i < from.rows; ++i) std::memmove(to.at(i, 0), from.at(i, 0), bytes);
}

void CpuBackend::read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) {
  const auto bytes = static_cast<std::size_t>(rows.bytes(width));
  expects(begin <= end && to.size() == bytes * static_cast<std::size_t>(end - begin), "the span holds the rows read");
  if (to.empty()) return;  // no memory, perhaps, which memcpy wants whatever it copies
  std::byte* at = to.data();
  for (int t = begin; t < end; ++t, at += bytes) std::memcpy(at, row_bytes(rows, t, width), bytes);
}

void CpuBackend::write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) {
  const auto bytes = static_cast<std::size_t>(rows.bytes(width));
  expects(begin <= end && from.size() == bytes * static_cast<std::size_t>(end - begin),
          "the span holds the rows written");
  if (from.empty()) return;
  const std::byte* at = from.data();
  for (int t = begin; t < end; ++t, at += bytes) std::memcpy(row_bytes(rows, t, width), at, bytes);
}

std::int64_t CpuBackend::first_nonfinite_row(ConstMatRef x) {
  expects(x.dtype == DType::kF32, "activations on cpu are F32");
  const MatView<const float> in = typed<const float>(x);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const float* row = in.row(i);
    // 0 * x is 0, and NaN for a NaN or an infinity. Several sums, so that they need not wait for each other.
    constexpr std::int64_t kSums = 16;
    float zeros[kSums] = {};
    std::int64_t j = 0;
    for (; j + kSums <= x.cols; j += kSums) {
      for (std::int64_t s = 0; s < kSums; ++s) zeros[s] += 0.0f * row[j + s];
    }
    for (; j < x.cols; ++j) zeros[0] += 0.0f * row[j];
    for (const float zero : zeros) {
      if (zero != zero) return i;
    }
  }
  return -1;
}

}  // namespace latte
