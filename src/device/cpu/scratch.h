#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace latte {

/// Uninitialised working memory that grows and never shrinks, 64-byte aligned. Contents are lost when it grows.
class Scratch {
 public:
  /// Room for `count` elements of T; valid until the next call.
  template <class T>
  T* get(std::int64_t count) {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > bytes_) {
      const std::size_t grown = bytes + bytes / 4;
      memory_.reset();
      bytes_ = 0;
      memory_.reset(static_cast<std::byte*>(::operator new(grown, kAlignment)));
      bytes_ = grown;
    }
    return reinterpret_cast<T*>(memory_.get());
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlignment); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace latte
