#pragma once

#include <span>

#include "io/checkpoint.h"
#include "latte/error.h"

namespace latte {

/// Reads every element once, on `threads` threads, and refuses the first tensor (in the order given) that holds NaN or
/// infinity, naming it, its file and the element. F64 values beyond F32's range count as infinite. Float dtypes only.
Status check_finite_weights(std::span<const TensorView* const> tensors, int threads);

}  // namespace latte
