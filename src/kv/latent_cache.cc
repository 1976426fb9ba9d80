#include "kv/latent_cache.h"

#include <utility>

#include "base/contract.h"
#include "base/fail.h"

namespace latte {

LatentCache::LatentCache(Backend& backend, int layers, int width, DType dtype, int capacity)
    : backend_(&backend), width_(width), dtype_(dtype), capacity_(capacity), pages_(static_cast<std::size_t>(layers)) {
  expects(layers >= 1 && width >= 1 && capacity >= 1, "a cache has layers, width and room");
}

Status LatentCache::reserve(int rows) {
  if (rows > capacity_) {
    return fail(ErrorKind::kInvalidInput,
                "[cache] {} rows wanted, the context holds {}: open it with a larger --ctx-size", rows, capacity_);
  }
  const std::size_t layer_bytes = std::size_t{kPageRows} * width_ * dtype_bytes(dtype_);
  while (static_cast<std::int64_t>(slabs_.size()) * kPageRows < rows) {
    Result<DeviceBuffer> slab = backend_->allocate(layer_bytes * pages_.size());
    if (!slab.ok()) return slab.error();
    auto* base = static_cast<std::byte*>(slab->data());
    slabs_.push_back(std::move(*slab));
    for (std::size_t layer = 0; layer < pages_.size(); ++layer) pages_[layer].push_back(base + layer * layer_bytes);
  }
  return {};
}

KeyRows LatentCache::layer_rows(int layer, int rows) const {
  expects(rows <= static_cast<std::int64_t>(slabs_.size()) * kPageRows, "rows are reserved before they are used");
  return {.pages = pages_[static_cast<std::size_t>(layer)].data(),
          .page_rows = kPageRows,
          .row_stride = width_,
          .lane_stride = 0,
          .rows = rows,
          .dtype = dtype_};
}

void LatentCache::append(int rows) {
  expects(length_ + rows <= static_cast<std::int64_t>(slabs_.size()) * kPageRows, "appended rows are reserved");
  length_ += rows;
}

Status LatentCache::rewind_to(int length) {
  if (!can_rewind_to(length)) {
    return fail(ErrorKind::kInvalidInput, "[cache] cannot rewind to {} rows: the cache holds {}", length, length_);
  }
  length_ = length;
  return {};
}

LatentSnapshot LatentCache::snapshot(int rows) const {
  expects(can_rewind_to(rows), "a snapshot is of rows that are there");
  LatentSnapshot out{.length = rows, .layers = layers(), .width = width_, .dtype = dtype_, .bytes = {}};
  const std::size_t layer_bytes = static_cast<std::size_t>(rows) * width_ * dtype_bytes(dtype_);
  out.bytes.resize(layer_bytes * pages_.size());
  for (int layer = 0; layer < layers(); ++layer) {
    read(layer, 0, rows, std::span(out.bytes).subspan(layer_bytes * static_cast<std::size_t>(layer), layer_bytes));
  }
  return out;
}

void LatentCache::read(int layer, int begin, int end, std::span<std::byte> to) const {
  backend_->read_rows(layer_rows(layer, length_), begin, end, width_, to);
}

Status LatentCache::prepare(const LatentRows& rows) {
  if (rows.layers != layers() || rows.width != width_ || rows.dtype != dtype_) {
    return fail(ErrorKind::kInvalidInput,
                "[cache] rows of {} layers, {} {} each, this cache has {} layers, {} {} each: they belong to another "
                "model or --cache-type",
                rows.layers, rows.width, dtype_name(rows.dtype), layers(), width_, dtype_name(dtype_));
  }
  return reserve(rows.length);
}

Status LatentCache::restore(const LatentRows& rows) {
  if (Status prepared = prepare(rows); !prepared.ok()) return prepared;
  const std::size_t layer_bytes = static_cast<std::size_t>(rows.length) * width_ * dtype_bytes(dtype_);
  for (int layer = 0; layer < layers(); ++layer) {
    backend_->write_rows(rows.bytes.subspan(layer_bytes * static_cast<std::size_t>(layer), layer_bytes),
                         layer_rows(layer, rows.length), 0, rows.length, width_);
  }
  length_ = rows.length;
  return {};
}

std::size_t LatentCache::bytes() const {
  std::size_t total = 0;
  for (const DeviceBuffer& slab : slabs_) total += slab.bytes();
  return total;
}

std::size_t LatentCache::bytes_per_token() const { return pages_.size() * width_ * dtype_bytes(dtype_); }

}  // namespace latte
