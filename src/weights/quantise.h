#pragma once

#include <cstdint>
#include <functional>

#include "latte/error.h"
#include "weights/model_weights.h"
#include "weights/quantise_plan.h"

namespace latte {

/// Told how many bytes of grouped matrices are made, of all.
using QuantiseProgress = std::function<void(std::int64_t done, std::int64_t all)>;

/// Replaces the matrices by grouped ones, each made once, on `threads` threads (0: the cores this process may use), and
/// gives the memory of their stored values back to the system. Errors: no memory.
Status quantise_weights(ModelWeights& weights, const QuantisePlan& plan, int threads,
                        const QuantiseProgress& on_progress = {});

}  // namespace latte
