#pragma once

#include <cstdint>
#include <span>

#include "io/checkpoint.h"
#include "latte/error.h"
#include "weights/model_weights.h"

namespace latte {

/// Whether what was scanned stays in memory. Given back: only for tensors of mapped files.
enum class ScannedPages : std::uint8_t { kKept, kGivenBack };

/// Reads every element once, on `threads` threads, and refuses the first tensor (in the order given) that holds NaN or
/// infinity, naming it, its file and the element. F64 values beyond F32's range count as infinite. Float dtypes only.
Status check_finite_weights(std::span<const TensorView* const> tensors, int threads,
                            ScannedPages pages = ScannedPages::kKept);

/// The same of the scales of all matrices in panels (tensor/grouped.h), which opening them does not look at. Every page
/// of theirs is read.
Status check_finite_scales(const ModelWeights& weights, int threads);

/// The same of all tensors in use of a model whose files hold panels: of the floats beside them opening looks only at
/// what it copies.
Status check_stored_panels(const ModelWeights& weights, int threads);

}  // namespace latte
