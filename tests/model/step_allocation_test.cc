// A step allocates nothing once the largest one has run: counted at operator new, model, caches, plan and backend
// together.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "device/open_backend.h"
#include "model/sequence.h"
#include "support/golden.h"

namespace {

std::atomic<long> allocations{0};

void* counted(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes); memory != nullptr) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace latte {
namespace {

TEST(StepAllocation, NothingIsAllocatedInsideAStepAfterWarmUp) {
  const std::string folder = std::string(LATTE_SOURCE_DIR) + "/tests/data/families/deepseek_v3";
  auto model = load_model(folder);
  ASSERT_TRUE(model.ok()) << model.error().message;
  for (const int threads : {1, 2}) {
    auto backend = open_backend({.device = "cpu", .threads = threads});
    ASSERT_TRUE(backend.ok());
    const SequenceOptions options{.context = 120};  // one page of the cache
    ModelSequence sequence(*model, **backend, options);
    MtpSequence mtp(*model, **backend, options, sequence.scratch());
    const std::vector<TokenId> ids(40, 7);
    const auto run = [&](std::size_t rows, Role role) {
      const auto step = sequence.step(std::span(ids).first(rows), role, LogitsWanted::kAll);
      EXPECT_TRUE(step.ok());
      EXPECT_TRUE(mtp.step(std::span(ids).first(rows), step->hidden, role, LogitsWanted::kLast).ok());
    };
    const auto cycle = [&] {
      run(40, Role::kPrompt);
      for (const std::size_t rows : {1, 2, 5, 16}) run(rows, Role::kGenerated);
      EXPECT_TRUE(sequence.rewind_to(0).ok() && mtp.rewind_to(0).ok());
    };
    cycle();
    const long before = allocations.load();
    cycle();
    EXPECT_EQ(allocations.load(), before) << threads << " threads";
  }
}

}  // namespace
}  // namespace latte
