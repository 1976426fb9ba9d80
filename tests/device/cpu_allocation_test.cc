// Once an operation has run, running it again allocates nothing: every allocation of this program is counted.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>

#include "support/operation_cases.h"
#include "support/test_backends.h"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return counted(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace latte::test {
namespace {

TEST(CpuAllocation, NothingAfterWarmUp) {
  Result<std::unique_ptr<Backend>> backend = open_cpu({"auto", 2});
  ASSERT_TRUE(backend.ok());
  int cases = 0;
  for (const OperationCase& one : operation_cases()) {
    std::vector<int> rows(static_cast<std::size_t>(one.rows));
    std::iota(rows.begin(), rows.end(), 0);
    const PreparedOperation operation = one.prepare(**backend, rows);
    operation.run();
    const long before = allocations.load();
    operation.run();
    EXPECT_LE(allocations.load() - before, 0) << one.name;
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

}  // namespace
}  // namespace latte::test
