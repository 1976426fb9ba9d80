#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/processor_name.h"
#include "latte/doctor.h"

namespace latte {

/// What the operating system tells of this machine. Linux; elsewhere the answers are empty.
std::int64_t memory_bytes();
/// Processes that ran or waited in the last minute, on average; -1 where it is not known.
double load_average();
/// Whether others keep the processor from `threads` threads: more ran or waited than these would make.
constexpr bool is_busy(double load_average, int threads) { return load_average > threads; }

/// Memory that can be taken without another process losing any, within this process's control group; 0: not told.
std::int64_t available_memory_bytes();
/// Graphics processors behind NVIDIA's driver or, without it, on the PCI bus.
std::vector<GpuState> find_gpus();
/// False where the system never gives huge pages, which a step's stream of weights gains from.
bool huge_pages_possible();

}  // namespace latte
