#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <system_error>

#include "base/fail.h"

namespace latte {
namespace {

constexpr auto kSpinTime = std::chrono::microseconds(50);
constexpr int kPausesPerLook = 64;
constexpr int kCountShift = 16;
constexpr std::uint32_t kNextMask = (1U << kCountShift) - 1;

/// Pieces of one share of `task_count` tasks.
std::uint32_t pieces_of(int task_count, int share, int threads) {
  const std::int64_t count = task_count;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(kShareCuts, count * (share + 1) / threads - count * share / threads));
}

/// Tells the core that this is a spin loop, so that it yields power and its sibling's slots.
inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `value` differs from `old`, then sleeps; returns the new value.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  const auto give_up = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      const std::uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause_core();
    }
  } while (std::chrono::steady_clock::now() < give_up);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

/// The hardware threads that share a core with `cpu`, as the system writes them ("0,64"); empty when it does not say.
std::string core_siblings(int cpu) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  std::string siblings;
  std::getline(file, siblings);
  return siblings;
}

}  // namespace

int available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  std::vector<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::string core = core_siblings(cpu);
    if (core.empty()) core = std::to_string(cpu);
    if (std::find(cores.begin(), cores.end(), core) == cores.end()) cores.push_back(std::move(core));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    return fail(ErrorKind::kInvalidInput, "{} threads asked for, expected 1..{} (0: one per core); pass another count",
                threads, kMaxThreads);
  }
  if (threads == 0) threads = std::min(available_cores(), kMaxThreads);
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->threads_ = threads;
  pool->workers_.reserve(static_cast<std::size_t>(threads - 1));
  pool->shares_ = std::vector<Share>(static_cast<std::size_t>(threads));
  try {
    for (int thread = 1; thread < threads; ++thread) {
      pool->workers_.emplace_back([raw = pool.get(), thread] { raw->work(thread); });
    }
  } catch (const std::system_error& refused) {
    return fail(ErrorKind::kIo, "{} threads asked for, the system gave {} ({}); ask for fewer", threads,
                pool->workers_.size() + 1, refused.what());
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stopping_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::dispatch(const Job& job) {
  job_ = job;
  std::uint32_t pieces = 0;
  for (int share = 0; share < threads_; ++share) pieces += pieces_of(job.task_count, share, threads_);
  unfinished_.store(pieces, std::memory_order_relaxed);
  for (int share = 0; share < threads_; ++share) {
    shares_[static_cast<std::size_t>(share)].pieces.store(pieces_of(job.task_count, share, threads_) << kCountShift,
                                                          std::memory_order_release);
  }
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  const std::uint32_t done = run_pieces(0);
  std::uint32_t left = unfinished_.fetch_sub(done, std::memory_order_acq_rel) - done;
  while (left != 0) left = wait_for_change(unfinished_, left);
}

/// True when `piece` is the caller's to run. Whoever comes late from an older job takes a piece of the one at hand: a
/// piece that can be taken belongs to a job that is not finished, and the word that names it was written after job_.
bool ThreadPool::claim(int share, int& piece) {
  std::atomic<std::uint32_t>& pieces = shares_[static_cast<std::size_t>(share)].pieces;
  std::uint32_t seen = pieces.load(std::memory_order_relaxed);
  while ((seen & kNextMask) < seen >> kCountShift) {
    if (pieces.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel)) {
      piece = static_cast<int>(seen & kNextMask);
      return true;
    }
  }
  return false;
}

/// Runs pieces until none is left to begin, from the thread's own share on; returns how many.
std::uint32_t ThreadPool::run_pieces(int thread) {
  std::uint32_t done = 0;
  for (int i = 0; i < threads_; ++i) {
    const int share = (thread + i) % threads_;
    for (int piece = 0; claim(share, piece); ++done) {
      const std::int64_t count = job_.task_count;
      const std::int64_t begin = count * share / threads_;
      const std::int64_t size = count * (share + 1) / threads_ - begin;
      const std::int64_t pieces = pieces_of(job_.task_count, share, threads_);
      job_.call(job_.callable, static_cast<int>(begin + size * piece / pieces),
                static_cast<int>(begin + size * (piece + 1) / pieces), thread);
    }
  }
  return done;
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = wait_for_change(epoch_, seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    const std::uint32_t done = run_pieces(thread);
    if (done != 0 && unfinished_.fetch_sub(done, std::memory_order_acq_rel) == done) unfinished_.notify_all();
  }
}

}  // namespace latte
