#pragma once

#include <cstdint>
#include <vector>

#include "plan/geometry.h"

namespace latte {

/// What the feed-forward half of a layer is.
enum class FfnKind : std::uint8_t { kDense, kMoe };

/// The sizes the loader checks a checkpoint against. Plain data; every number is positive unless it says "0".
struct WeightSpec {
  int hidden = 0;  ///< D
  int vocab = 0;
  int intermediate = 0;      ///< dense feed-forward width
  int moe_intermediate = 0;  ///< width of one expert
  int experts = 0;           ///< 0: none
  int shared_experts = 0;    ///< 0: none; otherwise one block of width shared_experts * moe_intermediate
  bool router_bias = false;  ///< e_score_correction_bias belongs to every router
  MlaGeometry geometry;
  int q_lora_rank = 0;  ///< 0: one q_proj
  std::vector<FfnKind> layers;
  int nextn_layers = 0;  ///< MTP layers that may be there; 0: none are loaded
  FfnKind nextn_kind = FfnKind::kDense;
  bool tie_word_embeddings = false;
};

}  // namespace latte
