#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/geometry.h"
#include "weights/quantise_plan.h"

namespace latte {

/// What the feed-forward half of a layer is.
enum class FfnKind : std::uint8_t { kDense, kMoe };

/// What the attention half of every layer is.
enum class AttentionKind : std::uint8_t { kMla, kGqa };

/// Which projections of the attention have a bias. Inputs: q_a_proj and kv_a_proj_with_mqa of MLA (never q_proj,
/// q_b_proj or kv_b_proj), q_proj, k_proj and v_proj of GQA. Output: o_proj.
struct AttentionBias {
  bool inputs = false;
  bool output = false;
};

/// The sizes the loader checks a checkpoint against. Plain data; every number is positive unless it says "0".
struct WeightSpec {
  int hidden = 0;  ///< D
  int vocab = 0;
  int intermediate = 0;                          ///< dense feed-forward width
  int moe_intermediate = 0;                      ///< width of one expert
  int experts = 0;                               ///< 0: none
  std::string experts_key = "n_routed_experts";  ///< what config.json calls their number
  int shared_experts = 0;    ///< 0: none; otherwise one block of width shared_experts * moe_intermediate
  bool router_bias = false;  ///< e_score_correction_bias belongs to every router
  AttentionKind attention = AttentionKind::kMla;
  MlaGeometry geometry;  ///< of MLA
  int q_lora_rank = 0;   ///< 0: one q_proj
  GqaGeometry gqa;       ///< of GQA
  bool qk_norm = false;  ///< GQA: q_norm and k_norm over each head
  AttentionBias bias;
  std::vector<FfnKind> layers;
  std::string layer_kinds_key;  ///< what of config.json decided them: "first_k_dense_replace 3"; empty: nothing did
  int nextn_layers = 0;         ///< MTP layers that may be there; 0: none are loaded
  FfnKind nextn_kind = FfnKind::kDense;
  bool tie_word_embeddings = false;
  double final_norm_scale = 1;                 ///< multiplies the final norm's weights
  std::optional<GroupedStorage> grouped = {};  ///< latte quantised the checkpoint; the head is then a tensor of its own

  /// Values that one token caches in one layer.
  constexpr int cache_width() const {
    return attention == AttentionKind::kGqa ? gqa.cache_width() : geometry.latent_width();
  }
};

}  // namespace latte
