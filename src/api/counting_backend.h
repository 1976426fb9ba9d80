#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "tensor/grouped.h"

namespace latte {

/// Passes every operation on and, while counting, adds up the bytes that a step cannot do without: each weight matrix
/// an operation names, of the experts those that some row of the step really chose, and every cached row once a layer.
/// Activations, norms and workspaces are not counted.
class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  void count(bool on) { counting_ = on; }
  std::int64_t bytes() const { return bytes_; }
  void reset() { bytes_ = 0; }

  const BackendInfo& info() const override { return inner_->info(); }
  Result<DeviceBuffer> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void upload(std::span<const double> x, MatRef to) override { inner_->upload(x, to); }
  void download(ConstMatRef from, std::span<float> x) override { inner_->download(from, x); }
  void copy(ConstMatRef from, MatRef to) override { inner_->copy(from, to); }
  void read_rows(const KeyRows& rows, int begin, int end, int width, std::span<std::byte> to) override {
    inner_->read_rows(rows, begin, end, width, to);
  }
  void write_rows(std::span<const std::byte> from, const KeyRows& rows, int begin, int end, int width) override {
    inner_->write_rows(from, rows, begin, end, width);
  }
  void embed(const EmbedArgs& args) override {
    add(static_cast<std::int64_t>(args.ids.size()), args.table_VD.cols, args.table_VD.dtype);
    inner_->embed(args);
  }
  void rms_norm(const RmsNormArgs& args) override { inner_->rms_norm(args); }
  void matmul(const MatmulArgs& args) override {
    for (const Projection& projection : args.projections) add(projection.w);
    inner_->matmul(args);
  }
  void head_matmul(const HeadMatmulArgs& args) override {
    add(args.w);
    inner_->head_matmul(args);
  }
  void rope(const RopeArgs& args) override { inner_->rope(args); }
  /// The rows stored are the last ones that the layer's attention then reads, with all before them.
  void store_rows(const StoreRowsArgs& args) override {
    add(args.first_row + args.x.rows, args.x.cols, args.rows.dtype);
    inner_->store_rows(args);
  }
  /// The first chunk brings W_UK and W_UV in; the chunks after it find them there.
  void expand_latent(const ExpandArgs& args) override {
    if (args.begin == 0) {
      add(args.w_uk_Hnr);
      add(args.w_uv_Hvr);
    }
    inner_->expand_latent(args);
  }
  void attend_partial(const AttendArgs& args) override { inner_->attend_partial(args); }
  void merge_partials(const MergeArgs& args) override { inner_->merge_partials(args); }
  void route(const RouteArgs& args) override { inner_->route(args); }
  void experts(const ExpertsArgs& args) override {
    if (counting_) add_chosen(args);
    inner_->experts(args);
  }
  void ffn(const FfnArgs& args) override {
    add(args.weights);
    inner_->ffn(args);
  }
  std::int64_t first_nonfinite_row(ConstMatRef x) override { return inner_->first_nonfinite_row(x); }
  Status synchronize() override { return inner_->synchronize(); }

 private:
  void add(std::int64_t rows, std::int64_t cols, DType dtype) {
    if (counting_) bytes_ += matrix_bytes(dtype, rows, cols);
  }
  void add(const ConstMatRef& m) { add(m.rows, m.cols, m.dtype); }
  void add(const ConstStackRef& s) { add(s.count * s.rows, s.cols, s.dtype); }
  void add(const ExpertWeights& block) {
    add(block.gate);
    add(block.up);
    add(block.down);
  }
  void add_chosen(const ExpertsArgs& args) {
    chosen_.assign(args.experts.size(), 0);
    for (std::int64_t row = 0; row < args.ids_Lk.rows; ++row) {
      for (std::int64_t k = 0; k < args.ids_Lk.cols; ++k) chosen_[static_cast<std::size_t>(args.ids_Lk(row, k))] = 1;
    }
    for (std::size_t e = 0; e < chosen_.size(); ++e) {
      if (chosen_[e] != 0) add(args.experts[e]);
    }
    if (args.shared != nullptr) add(*args.shared);
  }

  std::unique_ptr<Backend> inner_;
  bool counting_ = false;
  std::int64_t bytes_ = 0;
  std::vector<char> chosen_;
};

}  // namespace latte
