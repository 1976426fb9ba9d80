#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace latte {
namespace {

std::unique_ptr<ThreadPool> started(int threads) {
  Result<std::unique_ptr<ThreadPool>> pool = ThreadPool::start(threads);
  EXPECT_TRUE(pool.ok());
  return std::move(pool).value();
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (int threads : {1, 2, 3, 7}) {
    const auto pool = started(threads);
    ASSERT_EQ(pool->threads(), threads);
    for (int tasks : {0, 1, 2, 5, 64, 1000}) {
      std::vector<int> calls(static_cast<std::size_t>(tasks), 0);
      pool->run(tasks, [&](int task, int) { ++calls[static_cast<std::size_t>(task)]; });
      for (int count : calls) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, EachShareIsRunWholeByItsThreadOrTheCaller) {
  const auto pool = started(3);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<int> ran(100, -1);
    pool->run(100, [&](int task, int thread) { ran[static_cast<std::size_t>(task)] = thread; });
    for (int share = 0; share < 3; ++share) {
      const int owner = ran[static_cast<std::size_t>(100 * share / 3)];
      EXPECT_TRUE(owner == share || owner == 0);
      for (int task = 100 * share / 3; task < 100 * (share + 1) / 3; ++task) {
        EXPECT_EQ(ran[static_cast<std::size_t>(task)], owner);
      }
    }
  }
}

TEST(ThreadPool, ManyMoreThreadsThanCoresRunEveryTaskOnce) {
  const auto pool = started(24);
  for (int repeat = 0; repeat < 300; ++repeat) {
    std::vector<std::atomic<int>> runs(97);
    pool->run(97, [&](int task, int) { runs[static_cast<std::size_t>(task)].fetch_add(1); });
    for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
  }
}

TEST(ThreadPool, WritesOfOneRunAreSeenByTheNext) {
  const auto pool = started(4);
  std::vector<int> values(64, 0);
  for (int round = 0; round < 2000; ++round) {
    pool->run(64, [&](int task, int) {
      const auto from = static_cast<std::size_t>(63 - task);
      if (task < 32) values[static_cast<std::size_t>(task)] = values[from] + 1;
    });
    pool->run(64, [&](int task, int) {
      const auto from = static_cast<std::size_t>(63 - task);
      if (task >= 32) values[static_cast<std::size_t>(task)] = values[from];
    });
  }
  for (int value : values) EXPECT_EQ(value, 2000);
}

TEST(ThreadPool, WakesAfterSleeping) {
  const auto pool = started(2);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    int calls[2] = {0, 0};
    pool->run(2, [&](int task, int) { ++calls[task]; });
    EXPECT_EQ(calls[0], 1);
    EXPECT_EQ(calls[1], 1);
  }
}

TEST(ThreadPool, RefusesImpossibleCounts) {
  EXPECT_FALSE(ThreadPool::start(-1).ok());
  const auto refused = ThreadPool::start(kMaxThreads + 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("1025 threads"), std::string::npos);
}

TEST(ThreadPool, ZeroMeansOneThreadPerCore) { EXPECT_EQ(started(0)->threads(), available_cores()); }

}  // namespace
}  // namespace latte
