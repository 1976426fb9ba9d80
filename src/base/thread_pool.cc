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
  pool->claims_ = std::vector<Claim>(static_cast<std::size_t>(threads));
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
  unfinished_.store(static_cast<std::uint32_t>(workers_.size()), std::memory_order_relaxed);
  const std::uint32_t epoch = epoch_.fetch_add(1, std::memory_order_release) + 1;
  epoch_.notify_all();
  run_share(job, 0, 0);
  for (int share = 1; share < threads_; ++share) {
    if (!claim(share, epoch)) continue;
    run_share(job, share, 0);
    unfinished_.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;) {
    left = wait_for_change(unfinished_, left);
  }
}

/// True for the first who asks. A thread may come late with an epoch long past: what it finds is then newer.
bool ThreadPool::claim(int share, std::uint32_t epoch) {
  std::atomic<std::uint32_t>& last = claims_[static_cast<std::size_t>(share)].epoch;
  std::uint32_t seen = last.load(std::memory_order_relaxed);
  while (static_cast<std::int32_t>(epoch - seen) > 0) {
    if (last.compare_exchange_weak(seen, epoch, std::memory_order_acq_rel)) return true;
  }
  return false;
}

void ThreadPool::run_share(const Job& job, int share, int thread) const {
  const std::int64_t count = job.task_count;
  const auto begin = static_cast<int>(count * share / threads_);
  const auto end = static_cast<int>(count * (share + 1) / threads_);
  if (begin < end) job.call(job.callable, begin, end, thread);
}

void ThreadPool::work(int thread) {
  std::uint32_t seen = 0;
  while (true) {
    seen = wait_for_change(epoch_, seen);
    if (stopping_.load(std::memory_order_relaxed)) return;
    if (!claim(thread, seen)) continue;  // the caller was quicker
    run_share(job_, thread, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_all();
  }
}

}  // namespace latte
