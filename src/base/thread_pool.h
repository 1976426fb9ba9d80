#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "latte/error.h"

namespace latte {

/// Physical cores this process may run on, at least 1: hardware threads of one core count once.
int available_cores();

/// Most threads a pool starts.
inline constexpr int kMaxThreads = 1024;
/// Most pieces that a thread's share of the tasks is cut into.
inline constexpr int kShareCuts = 32;

/// A fixed set of threads. Of `task_count` tasks share i is the contiguous range [task_count * i / threads,
/// task_count * (i + 1) / threads), cut into at most kShareCuts pieces of neighbours. Thread i takes the pieces of its
/// own share in order, so that what it reads lies in a row, and then those of other shares that nobody has begun: a
/// thread that the system keeps waiting, or a core that is slower, costs its own time alone. Which thread runs a task
/// is therefore not known beforehand; what a task computes must not depend on it. Waiting threads spin for some tens of
/// microseconds, so that the next operation of a step finds them awake, and then sleep. One caller at a time; run()
/// must not be called from inside a task.
class ThreadPool {
 public:
  /// Starts `threads` - 1 workers; 0 means available_cores(). Errors: a count outside 0..kMaxThreads, or the system
  /// refuses.
  static Result<std::unique_ptr<ThreadPool>> start(int threads);

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls fn(task, thread) for every task and returns when all are done; `thread` is the one that runs the task, for
  /// memory of its own. What the tasks wrote is visible to the caller. Allocates nothing. With one thread or one task,
  /// everything runs in the caller.
  template <class Fn>
  void run(int task_count, Fn&& fn) {
    if (workers_.empty() || task_count <= 1) {
      for (int task = 0; task < task_count; ++task) fn(task, 0);
      return;
    }
    using Callable = std::remove_reference_t<Fn>;
    dispatch({task_count, const_cast<void*>(static_cast<const void*>(&fn)),
              [](void* callable, int begin, int end, int thread) {
                for (int task = begin; task < end; ++task) (*static_cast<Callable*>(callable))(task, thread);
              }});
  }

 private:
  struct Job {
    int task_count = 0;
    void* callable = nullptr;
    void (*call)(void* callable, int begin, int end, int thread) = nullptr;
  };

  ThreadPool() = default;
  void dispatch(const Job& job);
  bool claim(int share, int& piece);
  std::uint32_t run_pieces(int thread);
  void work(int thread);

  /// What is left of one share: a count of its pieces and the next of them, in one word.
  struct alignas(64) Share {
    std::atomic<std::uint32_t> pieces{0};
  };

  std::vector<std::thread> workers_;
  std::vector<Share> shares_;
  Job job_;
  int threads_ = 1;
  alignas(64) std::atomic<std::uint32_t> epoch_{0};       ///< counts jobs
  alignas(64) std::atomic<std::uint32_t> unfinished_{0};  ///< pieces of the job
  std::atomic<bool> stopping_{false};
};

}  // namespace latte
