#pragma once

#include <cstdint>

#include "io/checkpoint.h"
#include "latte/error.h"
#include "weights/model_weights.h"
#include "weights/weight_spec.h"

namespace latte {

/// What the weights are loaded for.
enum class LoadFor : std::uint8_t {
  kCompute,
  kQuantising,  ///< quantise_weights follows: matrices that it replaces stay views of the map, of any float type and
                ///< perhaps misaligned, and pages are given back as soon as they are scanned
};

/// Finds every tensor `spec` asks for, checks dtype and shape, folds kv_b_proj and scans all weights for NaN and
/// infinity.
///
/// F32 and BF16 matrices alias the mapped files. F16, F64 and misaligned tensors, norms and routers are copied to F32.
/// MTP layers are optional: one that is absent or incomplete is left out and the report says why. Names outside the
/// text model are reported as dropped; a name inside it that the architecture does not have is an error, since leaving
/// it out would give wrong text. Errors name tensor and file: a missing or unknown tensor, another shape or dtype, a
/// bias on kv_b_proj, NaN.
///
/// A checkpoint that latte quantised (`spec.grouped`) has its matrices as panels of tensor/grouped.h, U8 [panels, bytes
/// of one], under the names that they had: they alias the map and are read when a step needs them, as are the embedding
/// table and kv_b_proj. Only what is copied is scanned; the rest was when it was written. Errors then also are a number
/// of bytes that the shape does not have, and data that does not start on a cache line.
Result<ModelWeights> load_weights(Checkpoint checkpoint, const WeightSpec& spec, LoadFor purpose = LoadFor::kCompute);

}  // namespace latte
