#pragma once

#include <cstddef>

#include "latte/error.h"

namespace latte {

/// One block of memory for weights made at load, in huge pages where the system gives them: a step streams all of it.
/// Move-only; addresses survive moves.
class WeightArena {
 public:
  WeightArena() = default;
  /// Zeroed memory. Errors: no room, with the bytes asked for.
  static Result<WeightArena> make(std::size_t bytes);

  WeightArena(WeightArena&& other) noexcept;
  WeightArena& operator=(WeightArena&& other) noexcept;
  WeightArena(const WeightArena&) = delete;
  WeightArena& operator=(const WeightArena&) = delete;
  ~WeightArena();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  WeightArena(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace latte
