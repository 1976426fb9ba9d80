#pragma once

#include "model/config.h"
#include "model/key_reader.h"

// What families share. Each function reads some keys into the configuration; what does not hold stays in the reader.

namespace latte {

/// Limits on what is allocated per item before any weight is seen: an order of magnitude above the largest released
/// models.
inline constexpr int kMaxConfigInt = 2147483647;
inline constexpr int kMaxLayers = 4096;
inline constexpr int kMaxHeads = 65536;
inline constexpr int kMaxHeadWidth = 1 << 20;
inline constexpr int kMaxExperts = 65536;
inline constexpr int kMaxNextnLayers = 64;
inline constexpr int kMaxEosIds = 1024;

/// A family's defaults; 0 means that the key must be there.
struct SizeDefaults {
  int vocab = 0;
  int hidden = 0;
  int intermediate = 0;
  int layers = 0;
  int context = 0;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
};

/// dtype, vocabulary, widths, layers, context, norm eps, tying, bos and eos; hidden_act must be silu. Every layer is
/// dense until read_layer_kinds says otherwise.
void read_sizes(KeyReader& reader, const SizeDefaults& defaults, ModelConfig& config);

/// Latent attention: its widths, q_lora_rank (null: one q_proj), attention_bias. `geometry.heads` 0: the key must be
/// there; `geometry.v` 0: hidden_size / heads.
void read_mla(KeyReader& reader, const MlaGeometry& geometry, int q_lora_rank, ModelConfig& config);

/// Grouped-query attention: heads, num_key_value_heads (default: heads), head_dim (default: hidden_size / heads),
/// attention_bias. Rope turns halves; sliding windows are refused.
void read_gqa(KeyReader& reader, ModelConfig& config);

/// rope_theta, rope_interleave and rope_parameters or rope_scaling: plain, yarn, llama3 or longrope. After the
/// attention, whose width the lists of longrope must have.
void read_rope(KeyReader& reader, ModelConfig& config);

struct ExpertDefaults {
  const char* experts_key = "n_routed_experts";
  int experts = 0;  ///< 0: the key must be there (null: every layer is dense)
  int shared = 0;
  int n_group = 1;
  int topk_group = 1;  ///< where n_group is above 1
  int top_k = 0;
  int moe_intermediate = 0;
  double scaling = 1;
  bool norm_topk_prob = true;
};

/// Experts and the choice among them: counts, groups, scaling. The kind of router is the family's to set.
void read_experts(KeyReader& reader, const ExpertDefaults& defaults, ModelConfig& config);

/// mlp_layer_types where given, else dense before first_k_dense_replace (default `first_moe`) and off moe_layer_freq.
void read_layer_kinds(KeyReader& reader, int first_moe, ModelConfig& config);

/// num_nextn_predict_layers: the MTP layers that may be there (default and null: 1, whose tensors decide).
void read_nextn(KeyReader& reader, ModelConfig& config);

/// An id, a list of ids, or `otherwise`.
std::vector<int> read_ids(KeyReader& reader, const char* key, std::vector<int> otherwise);

/// Products of sizes that later code forms in int: rows of projections and of expert blocks. Last of all.
void check_products(KeyReader& reader, const ModelConfig& config);

}  // namespace latte
