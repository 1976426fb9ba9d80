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

/// The first task of one share waits for all other tasks, those of its own share among them.
TEST(ThreadPool, AThreadThatIsHeldUpHoldsUpNoOtherTask) {
  constexpr int kTasks = 3 * kShareCuts;
  const auto pool = started(3);
  for (int held : {0, kShareCuts, 2 * kShareCuts}) {
    std::atomic<int> others{0};
    bool all_ran = false;
    pool->run(kTasks, [&](int task, int) {
      if (task != held) {
        others.fetch_add(1);
        return;
      }
      const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (others.load() < kTasks - 1 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
      all_ran = others.load() == kTasks - 1;
    });
    EXPECT_TRUE(all_ran) << others.load() << " of " << kTasks - 1 << " other tasks ran beside task " << held;
  }
}

TEST(ThreadPool, NeighboursOfAPieceRunInOrderOnOneThread) {
  constexpr int kTasks = 1000;
  constexpr int kShare = kTasks / 2;
  const auto pool = started(2);
  std::vector<int> ran(kTasks), order(kTasks);
  std::atomic<int> clock{0};
  pool->run(kTasks, [&](int task, int thread) {
    ran[static_cast<std::size_t>(task)] = thread;
    order[static_cast<std::size_t>(task)] = clock.fetch_add(1);
  });
  for (int share = 0; share < 2; ++share) {
    for (int piece = 0; piece < kShareCuts; ++piece) {
      const int end = kShare * (piece + 1) / kShareCuts;
      for (int task = kShare * piece / kShareCuts + 1; task < end; ++task) {
        const auto at = static_cast<std::size_t>(share * kShare + task);
        EXPECT_EQ(ran[at], ran[at - 1]) << task;
        EXPECT_GT(order[at], order[at - 1]) << task;
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
