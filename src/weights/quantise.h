#pragma once

#include <functional>

#include "latte/error.h"
#include "weights/model_weights.h"

namespace latte {

/// The grouped formats (tensor/grouped.h) that a model's matrices take when it is quantised at load. Embedding table,
/// norms, routers, biases and kv_b_proj, which both forms of the attention read in two directions, stay as they are
/// stored.
struct QuantisePlan {
  DType attention = DType::kQ8;  ///< projections of the attention
  DType ffn = DType::kQ8;        ///< dense blocks, experts, shared experts, eh_proj of MTP layers
  DType head = DType::kQ8;
};

/// Replaces the matrices by grouped ones, each made once, on `threads` threads, and gives the pages of their stored
/// values back to the system. `on_progress` gets shares of 1. Errors: no memory.
Status quantise_weights(ModelWeights& weights, const QuantisePlan& plan, int threads,
                        const std::function<void(double)>& on_progress = {});

}  // namespace latte
