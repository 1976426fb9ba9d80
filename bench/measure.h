#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/thread_pool.h"

namespace latte::bench {

/// Seconds of one call.
double seconds_of(const std::function<void()>& work);

double median(std::vector<double> values);

/// Bytes per second of all threads of `pool` reading `buffer` once, the median of `repeats` passes over the warm
/// buffer.
double read_bandwidth(ThreadPool& pool, const std::vector<std::byte>& buffer, int repeats);

/// Processor, instruction set and threads, for the head of a table.
std::string machine_line(const BackendInfo& info);

/// Peak resident bytes of this process since the last reset_peak(), and the reset (a no-op where the system refuses).
std::size_t peak_bytes();
void reset_peak();
std::size_t resident_bytes();

}  // namespace latte::bench
