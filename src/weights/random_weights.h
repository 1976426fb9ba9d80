#pragma once

#include <cstdint>
#include <optional>

#include "latte/error.h"
#include "tensor/dtype.h"
#include "weights/model_weights.h"
#include "weights/quantise.h"
#include "weights/weight_spec.h"

namespace latte {

/// Bytes that random_weights takes; the largest number there is where the sizes multiply to more.
std::int64_t random_weight_bytes(const WeightSpec& spec, DType dtype, const std::optional<QuantisePlan>& plan);

/// Weights for `spec` that no file holds: what measuring needs of a model that was not downloaded. The object is the
/// loader's, so everything behind it is the same code. Matrices are stored as `dtype`, kBf16 or kF32, those of `plan`
/// in its grouped formats, uniform with a variance of one over their inner width, so that a layer neither grows nor
/// fades, embeddings of variance 1; norms are 1 (the final one its scale), biases 0, routers F32. Equal seeds give
/// equal bits whatever the number of threads; 0 threads: the cores this process may use. MTP layers share embedding and
/// head with the main model. All memory is taken at once, in huge pages where the system gives them. Errors: no memory,
/// sizes whose product is no 63-bit number.
Result<ModelWeights> random_weights(const WeightSpec& spec, DType dtype, std::uint64_t seed, int threads = 0,
                                    const std::optional<QuantisePlan>& plan = std::nullopt);

}  // namespace latte
