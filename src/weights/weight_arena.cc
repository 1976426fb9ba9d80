#include "weights/weight_arena.h"

#include <sys/mman.h>

#include <utility>

#include "base/fail.h"

namespace latte {

Result<WeightArena> WeightArena::make(std::size_t bytes) {
  if (bytes == 0) return WeightArena();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return fail(ErrorKind::kOutOfMemory,
                "[load] {} bytes for weights asked for, the system has no room: use a smaller "
                "model or fewer bits",
                bytes);
  }
  (void)madvise(data, bytes, MADV_HUGEPAGE);  // a wish: without it all still works
  return WeightArena(static_cast<std::byte*>(data), bytes);
}

WeightArena::WeightArena(WeightArena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

WeightArena& WeightArena::operator=(WeightArena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

WeightArena::~WeightArena() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace latte
