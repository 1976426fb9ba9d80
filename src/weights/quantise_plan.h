#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace latte {

/// The grouped formats (tensor/grouped.h) of a model's matrices. Embedding table, norms, routers, biases and kv_b_proj,
/// which both forms of the attention read in two directions, stay as they are stored.
struct QuantisePlan {
  DType attention = DType::kQ8;  ///< projections of the attention
  DType ffn = DType::kQ8;        ///< dense blocks, experts, shared experts, eh_proj of MTP layers
  DType head = DType::kQ8;

  bool operator==(const QuantisePlan&) const = default;
};

/// The plan of a choice by its word: "q8", "q4", "q4:q8-attn". Nothing: another word.
std::optional<QuantisePlan> find_quantise_plan(std::string_view word);

/// Every word with a plan, for messages: "q8, q4, q4:q8-attn".
std::string quantise_words();

/// A checkpoint whose matrices are stored grouped.
struct GroupedStorage {
  QuantisePlan plan;
  DType source_dtype = DType::kBf16;  ///< what most bytes of the model were stored in before
};

}  // namespace latte
