#include "kv/latent_cache.h"

#include <utility>

#include "base/contract.h"
#include "base/fail.h"

namespace latte {

LatentCache::LatentCache(Backend& backend, int layers, const RowFormat& row, int capacity)
    : backend_(&backend), row_(row), capacity_(capacity), pages_(static_cast<std::size_t>(layers)) {
  expects(layers >= 1 && row.width >= 1 && capacity >= 1, "a cache has layers, width and room");
}

Status LatentCache::reserve(int rows) {
  if (rows > capacity_) {
    return fail(ErrorKind::kInvalidInput,
                "[cache] {} rows wanted, the context holds {}: open it with a larger --ctx-size", rows, capacity_);
  }
  const std::size_t layer_bytes = std::size_t{kPageRows} * row_bytes();
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
          .row_stride = row_.width,
          .lane_stride = 0,
          .rows = rows,
          .dtype = row_.dtype,
          .piece = row_.piece};
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
  LatentSnapshot out{.length = rows, .layers = layers(), .row = row_, .bytes = {}};
  const std::size_t layer_bytes = static_cast<std::size_t>(rows) * row_bytes();
  out.bytes.resize(layer_bytes * pages_.size());
  for (int layer = 0; layer < layers(); ++layer) {
    read(layer, 0, rows, std::span(out.bytes).subspan(layer_bytes * static_cast<std::size_t>(layer), layer_bytes));
  }
  return out;
}

void LatentCache::read(int layer, int begin, int end, std::span<std::byte> to) const {
  backend_->read_rows(layer_rows(layer, length_), begin, end, row_.width, to);
}

Status LatentCache::prepare(const LatentRows& rows) {
  if (rows.layers != layers() || rows.row != row_) {
    return fail(ErrorKind::kInvalidInput,
                "[cache] rows of {} layers, {} {} each, this cache has {} layers, {} {} each: they belong to another "
                "model or --cache-type",
                rows.layers, rows.row.width, dtype_name(rows.row.dtype), layers(), row_.width, dtype_name(row_.dtype));
  }
  return reserve(rows.length);
}

Status LatentCache::restore(const LatentRows& rows) {
  if (Status prepared = prepare(rows); !prepared.ok()) return prepared;
  const std::size_t layer_bytes = static_cast<std::size_t>(rows.length) * row_bytes();
  for (int layer = 0; layer < layers(); ++layer) {
    backend_->write_rows(rows.bytes.subspan(layer_bytes * static_cast<std::size_t>(layer), layer_bytes),
                         layer_rows(layer, rows.length), 0, rows.length, row_.width);
  }
  length_ = rows.length;
  return {};
}

std::size_t LatentCache::bytes() const {
  std::size_t total = 0;
  for (const DeviceBuffer& slab : slabs_) total += slab.bytes();
  return total;
}

std::size_t LatentCache::bytes_per_token() const { return pages_.size() * row_bytes(); }

}  // namespace latte
