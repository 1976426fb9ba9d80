#pragma once

#include <cstdint>

#include "backend/softmax_state.h"
#include "device/cpu/kernel_table.h"

namespace latte {

/// One row's partial result in memory: normalised o and its log-sum.
struct StateRef {
  float* o = nullptr;
  float* log2_sum = nullptr;
};

/// Folds (o, log2_sum) into `into` by the merge law. An empty state changes nothing; an empty `into` takes the other's
/// bits. Folding into a slot and merging slots both come here, so that they round alike.
void fold_state(const KernelTable& kernels, StateRef into, const float* o, float log2_sum, std::int64_t width);

}  // namespace latte
