#pragma once

#include "io/checkpoint.h"
#include "latte/error.h"
#include "weights/model_weights.h"
#include "weights/weight_spec.h"

namespace latte {

/// Finds every tensor `spec` asks for, checks dtype and shape, folds kv_b_proj and scans all weights for NaN and
/// infinity.
///
/// F32 and BF16 matrices alias the mapped files. F16, F64 and misaligned tensors, norms and routers are copied to F32.
/// MTP layers are optional: one that is absent or incomplete is left out and the report says why. Names outside the
/// text model are reported as dropped; a name inside it that the architecture does not have is an error, since leaving
/// it out would give wrong text. Errors name tensor and file: a missing or unknown tensor, another shape or dtype, a
/// bias on kv_b_proj, NaN.
Result<ModelWeights> load_weights(Checkpoint checkpoint, const WeightSpec& spec);

}  // namespace latte
