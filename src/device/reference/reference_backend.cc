#include "device/reference/reference_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "base/fail.h"
#include "device/reference/operations.h"
#include "device/reference/panel.h"
#include "device/reference/rows_of_doubles.h"

namespace latte {
namespace {

constexpr std::size_t kAlignment = 64;

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend()
      : info_{.name = "reference",
              .isa = "double",
              .threads = reference::thread_count(),
              .activation = DType::kF64,
              .cache_dtypes = {DType::kF64, DType::kF32, DType::kBf16, DType::kF16, DType::kQ8}} {}

  const BackendInfo& info() const override { return info_; }

  Result<DeviceBuffer> allocate(std::size_t bytes) override {
    void* data = nullptr;
    if (bytes <= std::numeric_limits<std::size_t>::max() - kAlignment) {
      const std::size_t whole_lines = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
      data = std::aligned_alloc(kAlignment, whole_lines);
    }
    if (data == nullptr) {
      return fail(ErrorKind::kOutOfMemory,
                  "[memory] the host refused {} bytes: use a smaller model, context or cache type", bytes);
    }
    return DeviceBuffer(data, bytes, [](void* freed, std::size_t) { std::free(freed); });
  }

  void upload(std::span<const double> x, MatRef to) override {
    expects(std::cmp_equal(x.size(), to.rows * to.cols), "upload fills the matrix");
    for (std::int64_t i = 0; i < to.rows; ++i) {
      reference::write_doubles(x.data() + i * to.cols, to.cols, to.at(i, 0), to.dtype);
    }
  }

  void download(ConstMatRef from, std::span<float> x) override {
    expects(std::cmp_equal(x.size(), from.rows * from.cols), "download empties the matrix");
    std::vector<double> row(static_cast<std::size_t>(from.cols));
    for (std::int64_t i = 0; i < from.rows; ++i) {
      reference::read_doubles(from.at(i, 0), from.dtype, from.cols, row.data());
      std::transform(row.begin(), row.end(), x.begin() + i * from.cols,
                     [](double value) { return static_cast<float>(value); });
    }
  }

  void copy(ConstMatRef from, MatRef to) override {
    expects(from.dtype == to.dtype && from.rows == to.rows && from.cols == to.cols, "copy keeps type and shape");
    const std::size_t row_bytes = static_cast<std::size_t>(from.cols) * dtype_bytes(from.dtype);
    for (std::int64_t i = 0; i < from.rows; ++i) std::memcpy(to.at(i, 0), from.at(i, 0), row_bytes);
  }

  void read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) override {
    const auto row_bytes = static_cast<std::size_t>(rows.bytes(width));
    expects(begin <= end && to.size() == row_bytes * static_cast<std::size_t>(end - begin),
            "read_rows fills the bytes");
    if (to.empty()) return;  // no memory, perhaps, which memcpy wants whatever it copies
    for (int t = begin; t < end; ++t) std::memcpy(to.data() + row_bytes * (t - begin), rows.row(t), row_bytes);
  }

  void write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) override {
    const auto row_bytes = static_cast<std::size_t>(rows.bytes(width));
    expects(begin <= end && from.size() == row_bytes * static_cast<std::size_t>(end - begin),
            "write_rows uses the bytes");
    if (from.empty()) return;
    for (int t = begin; t < end; ++t) std::memcpy(rows.row(t), from.data() + row_bytes * (t - begin), row_bytes);
  }

  void embed(const EmbedArgs& args) override { reference::embed(args); }
  void rms_norm(const RmsNormArgs& args) override { reference::rms_norm(args); }
  void matmul(const MatmulArgs& args) override { reference::matmul(args); }
  void head_matmul(const HeadMatmulArgs& args) override { reference::head_matmul(args); }
  void rope(const RopeArgs& args) override { reference::rope(args); }
  void store_rows(const StoreRowsArgs& args) override { reference::store_rows(args); }
  void expand_latent(const ExpandArgs& args) override { reference::expand_latent(args); }
  void attend_partial(const AttendArgs& args) override { reference::attend_partial(args); }
  void merge_partials(const MergeArgs& args) override { reference::merge_partials(args); }
  void route(const RouteArgs& args) override { reference::route(args); }
  void experts(const ExpertsArgs& args) override { reference::experts(args); }
  void ffn(const FfnArgs& args) override { reference::ffn(args); }

  std::int64_t first_nonfinite_row(ConstMatRef x) override {
    std::vector<double> row(static_cast<std::size_t>(x.cols));
    for (std::int64_t i = 0; i < x.rows; ++i) {
      reference::read_doubles(x.at(i, 0), x.dtype, x.cols, row.data());
      if (!std::all_of(row.begin(), row.end(), [](double value) { return std::isfinite(value); })) return i;
    }
    return -1;
  }

  Status synchronize() override { return {}; }

 private:
  BackendInfo info_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace latte
