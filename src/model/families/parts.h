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

/// What missing keys mean to a family: nothing but what its documentation gives.
struct SizeDefaults {
  Absent<int> vocab = {}, hidden = {}, intermediate = {}, layers = {};
  Absent<double> rms_norm_eps = {};
  Absent<bool> tie_word_embeddings = means(false);
};

/// dtype, vocabulary, widths, layers, context, norm eps, tying, bos and eos; hidden_act must be silu. Every layer is
/// dense until read_layer_kinds says otherwise.
void read_sizes(KeyReader& reader, const SizeDefaults& defaults, ModelConfig& config);

struct MlaDefaults {
  Absent<int> heads = {}, r = {}, p = {}, n = {}, v = {};
  Absent<int> q_lora_rank = {};  ///< null: one q_proj
};

/// Latent attention: its widths, q_lora_rank, attention_bias. Keys and values are those of every head, so
/// num_key_value_heads may only repeat num_attention_heads.
void read_mla(KeyReader& reader, const MlaDefaults& defaults, ModelConfig& config);

/// Grouped-query attention: heads, num_key_value_heads (default: heads), head_dim (default: hidden_size / heads),
/// attention_bias. Rope turns halves; sliding windows are refused.
void read_gqa(KeyReader& reader, ModelConfig& config);

/// rope_theta, rope_interleave and rope_parameters or rope_scaling: plain, yarn, llama3 or longrope. After the
/// attention, whose width the lists of longrope must have.
void read_rope(KeyReader& reader, const Absent<double>& theta, ModelConfig& config);

struct ExpertDefaults {
  const char* experts_key = "n_routed_experts";
  Absent<int> experts = {};  ///< null: every layer is dense
  Absent<int> shared = {};   ///< null: none
  Absent<int> n_group = means(1);
  Absent<int> topk_group = {};  ///< where n_group is above 1
  Absent<int> top_k = {};
  Absent<int> moe_intermediate = {};
  Absent<double> scaling = {};
  Absent<bool> norm_topk_prob = {};
};

/// Experts and the choice among them: counts, groups, scaling. The kind of router is the family's to set.
void read_experts(KeyReader& reader, const ExpertDefaults& defaults, ModelConfig& config);

/// mlp_layer_types where given, else dense before first_k_dense_replace and off moe_layer_freq.
void read_layer_kinds(KeyReader& reader, const Absent<int>& first_moe, ModelConfig& config);

/// num_nextn_predict_layers: the MTP layers that may be there (default and null: 1, whose tensors decide).
void read_nextn(KeyReader& reader, ModelConfig& config);

/// An id of the vocabulary, a list of such ids, or `otherwise`.
std::vector<int> read_ids(KeyReader& reader, const char* key, int vocab, std::vector<int> otherwise);
/// bos_token_id, an id of the vocabulary.
void read_bos(KeyReader& reader, ModelConfig& config);

/// Products of sizes that later code forms in int: rows of projections and of expert blocks. Last of all.
void check_products(KeyReader& reader, const ModelConfig& config);

}  // namespace latte
