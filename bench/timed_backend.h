#pragma once

#include <array>
#include <string_view>

#include "backend/backend.h"
#include "base/stopwatch.h"

namespace latte::bench {

/// Passes every operation on and adds up where the time goes: the profile of a step.
class TimedBackend final : public Backend {
 public:
  enum Operation {
    kEmbed,
    kNorm,
    kMatmul,
    kHeadMatmul,
    kRope,
    kStore,
    kExpand,
    kAttend,
    kMerge,
    kRoute,
    kExperts,
    kFfn,
    kCopy,
    kFinite,
    kTransfer,
    kOperations
  };
  static constexpr std::array<std::string_view, kOperations> kNames = {
      "embed",      "rms_norm",      "matmul",         "head_matmul",         "rope",
      "store_rows", "expand_latent", "attend_partial", "merge_partials",      "route",
      "experts",    "ffn",           "copy",           "first_nonfinite_row", "upload, download"};

  explicit TimedBackend(Backend& inner) : inner_(inner) {}

  double seconds(Operation operation) const { return seconds_[operation]; }
  std::int64_t calls(Operation operation) const { return calls_[operation]; }
  void reset() { seconds_ = {}, calls_ = {}; }

  const BackendInfo& info() const override { return inner_.info(); }
  Result<DeviceBuffer> allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void upload(std::span<const double> x, MatRef to) override {
    timed(kTransfer, [&] { inner_.upload(x, to); });
  }
  void download(ConstMatRef from, std::span<float> x) override {
    timed(kTransfer, [&] { inner_.download(from, x); });
  }
  void copy(ConstMatRef from, MatRef to) override {
    timed(kCopy, [&] { inner_.copy(from, to); });
  }
  void read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) override {
    inner_.read_rows(rows, begin, end, width, to);
  }
  void write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) override {
    inner_.write_rows(from, rows, begin, end, width);
  }
  void embed(const EmbedArgs& args) override {
    timed(kEmbed, [&] { inner_.embed(args); });
  }
  void rms_norm(const RmsNormArgs& args) override {
    timed(kNorm, [&] { inner_.rms_norm(args); });
  }
  void matmul(const MatmulArgs& args) override {
    timed(kMatmul, [&] { inner_.matmul(args); });
  }
  void head_matmul(const HeadMatmulArgs& args) override {
    timed(kHeadMatmul, [&] { inner_.head_matmul(args); });
  }
  void rope(const RopeArgs& args) override {
    timed(kRope, [&] { inner_.rope(args); });
  }
  void store_rows(const StoreRowsArgs& args) override {
    timed(kStore, [&] { inner_.store_rows(args); });
  }
  void expand_latent(const ExpandArgs& args) override {
    timed(kExpand, [&] { inner_.expand_latent(args); });
  }
  void attend_partial(const AttendArgs& args) override {
    timed(kAttend, [&] { inner_.attend_partial(args); });
  }
  void merge_partials(const MergeArgs& args) override {
    timed(kMerge, [&] { inner_.merge_partials(args); });
  }
  void route(const RouteArgs& args) override {
    timed(kRoute, [&] { inner_.route(args); });
  }
  void experts(const ExpertsArgs& args) override {
    timed(kExperts, [&] { inner_.experts(args); });
  }
  void ffn(const FfnArgs& args) override {
    timed(kFfn, [&] { inner_.ffn(args); });
  }
  std::int64_t first_nonfinite_row(ConstMatRef x) override {
    std::int64_t row = 0;
    timed(kFinite, [&] { row = inner_.first_nonfinite_row(x); });
    return row;
  }
  Status synchronize() override { return inner_.synchronize(); }

 private:
  template <class Work>
  void timed(Operation operation, Work work) {
    const Stopwatch clock;
    work();
    seconds_[operation] += clock.seconds();
    ++calls_[operation];
  }

  Backend& inner_;
  std::array<double, kOperations> seconds_{};
  std::array<std::int64_t, kOperations> calls_{};
};

}  // namespace latte::bench
