#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "latte/error.h"

namespace latte {

/// The cached rows of every layer in host memory that somebody else owns.
struct LatentRows {
  int length = 0;
  int layers = 0;
  RowFormat row;
  std::span<const std::byte> bytes;  ///< [layers, length, row.bytes()]
};

/// The cached rows of every layer at one moment, on the host.
struct LatentSnapshot {
  int length = 0;
  int layers = 0;
  RowFormat row;
  std::vector<std::byte> bytes;  ///< [layers, length, row.bytes()]

  LatentRows rows() const { return {length, layers, row, bytes}; }
};

/// The cache of an MLA model: one row [c (r) | k_pe (p)] per token and layer, in pages that all layers share, so that
/// growth allocates a page and copies nothing. A step writes rows past length() through layer_rows(), then makes them
/// count with append(). Single owner, one thread at a time. The backend must outlive it.
class LatentCache {
 public:
  static constexpr int kPageRows = 128;

  /// A cache of at most `capacity` rows; holds no memory until rows are reserved.
  LatentCache(Backend& backend, int layers, const RowFormat& row, int capacity);

  int length() const { return length_; }
  int capacity() const { return capacity_; }
  int layers() const { return static_cast<int>(pages_.size()); }
  const RowFormat& row() const { return row_; }

  /// Makes room for `rows` rows in all. Errors: past the capacity, or no memory; the cache is then as before.
  Status reserve(int rows);

  /// The rows of one layer as attention sees them after a step has stored rows up to `rows`; they are reserved already.
  KeyRows layer_rows(int layer, int rows) const;

  /// The last step's `rows` rows now count.
  void append(int rows);

  bool can_rewind_to(int length) const { return length >= 0 && length <= length_; }
  /// Drops the rows from `length` on. Refuses what can_rewind_to denies and changes nothing then.
  Status rewind_to(int length);

  LatentSnapshot snapshot() const { return snapshot(length_); }
  /// The first `rows` rows alone.
  LatentSnapshot snapshot(int rows) const;
  /// Rows [begin, end) of one layer, [end - begin, row().bytes()], as they are stored.
  void read(int layer, int begin, int end, std::span<std::byte> to) const;
  /// Makes room for rows that are to be restored. Errors: another shape or type, no room; the content stays.
  Status prepare(const LatentRows& rows);
  /// Replaces the content. Errors: those of prepare(), after which it cannot fail.
  Status restore(const LatentRows& rows);
  Status restore(const LatentSnapshot& snapshot) { return restore(snapshot.rows()); }

  /// Bytes of one row of one layer.
  std::size_t row_bytes() const { return static_cast<std::size_t>(row_.bytes()); }
  /// Bytes of device memory held.
  std::size_t bytes() const;
  /// Bytes one token takes over all layers.
  std::size_t bytes_per_token() const;

 private:
  Backend* backend_;
  RowFormat row_;
  int capacity_;
  int length_ = 0;
  std::vector<DeviceBuffer> slabs_;        // page i of every layer
  std::vector<std::vector<void*>> pages_;  // [layer][page]
};

}  // namespace latte
