#pragma once

#include <cstdint>

#include "backend/softmax_state.h"
#include "device/cpu/kernel_table.h"

namespace latte {

/// One row's partial result in memory: normalised o and its log-sum. An empty one's o is not read.
struct StateRef {
  float* o = nullptr;
  float* log2_sum = nullptr;
};

/// The state that is folded in: share * o is normalised.
struct FoldedState {
  const float* o = nullptr;
  float log2_sum = 0;
  float share = 1;
};

/// Folds `state` into `into` by the merge law. An empty state changes nothing; an empty `into` takes the other's bits.
/// Folding into a slot and merging slots both come here, so that they round alike.
void fold_state(const KernelTable& kernels, StateRef into, const FoldedState& state, std::int64_t width);

}  // namespace latte
