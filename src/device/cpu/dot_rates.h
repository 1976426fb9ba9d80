#pragma once

#include <span>
#include <vector>

#include "device/cpu/kernel_table.h"
#include "latte/error.h"
#include "plan/dot_rate.h"

namespace latte {

/// Runs the dot loops of these instruction sets on `threads` threads (0: the physical cores), each for about `seconds`,
/// and adds up what each thread reached at its quickest. Errors: an impossible thread count.
Result<std::vector<DotRate>> dot_rates_of(std::span<const KernelTable* const> sets, int threads, double seconds);

}  // namespace latte
