#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "io/json_file.h"
#include "latte/error.h"
#include "model/stored_quantisation.h"
#include "plan/geometry.h"
#include "tensor/row_format.h"
#include "weights/weight_spec.h"

namespace latte {

/// YaRN parameters of rope_scaling / rope_parameters; names are those of the configuration files.
struct YarnConfig {
  double factor = 1;
  double original_max = 0;  ///< original_max_position_embeddings
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1;
  double mscale_all_dim = 0;
  std::optional<double> attention_factor;  ///< replaces the cos and sin magnitude when given
  bool truncate = true;                    ///< round the ramp's bounds to whole dimensions
};

/// Llama 3's scaling: slow rotations are slowed by `factor`, fast ones kept, those between blended.
struct Llama3Config {
  double factor = 8;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_max = 8192;
};

/// LongRoPE: each rotation is slowed by its own factor, of one list up to original_max positions and of another beyond.
struct LongRopeConfig {
  std::vector<double> short_factor, long_factor;  ///< [width / 2]
  double original_max = 0;
  double magnitude = 1;  ///< of cos and sin, with either list
};

struct RopeConfig {
  double theta = 10000;
  bool interleave = true;  ///< pairs (0,1), (2,3), ...; false: halves
  // At most one of these.
  std::optional<YarnConfig> yarn;
  std::optional<Llama3Config> llama3;
  std::optional<LongRopeConfig> longrope;
};

enum class RouterScoring : std::uint8_t { kSigmoid, kSoftmax };

/// Mixture of experts; experts == 0 means every layer is dense.
struct MoeConfig {
  int experts = 0;
  std::string experts_key = "n_routed_experts";  ///< what the file calls their number
  int top_k = 0;
  int n_group = 1;
  int topk_group = 1;
  int shared = 0;  ///< shared experts, one block of width shared * moe_intermediate
  double scaling = 1;
  bool norm_topk_prob = true;
  RouterScoring scoring = RouterScoring::kSigmoid;
  GroupScore group_score = GroupScore::kTop2Sum;  ///< how the best topk_group of n_group groups are found
  bool bias = true;                               ///< e_score_correction_bias takes part in the choice
};

/// What generation_config.json suggests; absent where it says nothing.
struct GenerationDefaults {
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> repetition_penalty;
};

/// A model's configuration, checked and with every default filled in. Plain data.
struct ModelConfig {
  std::string family;      ///< the family whose mathematics apply: "deepseek_v3" (src/model/families)
  std::string model_type;  ///< as the file says; may be empty
  std::vector<std::string> architectures;
  DType dtype = DType::kBf16;  ///< torch_dtype / dtype: what released weights are stored in

  int vocab = 0;
  int hidden = 0;            ///< D
  int intermediate = 0;      ///< width of a dense feed-forward layer
  int moe_intermediate = 0;  ///< width of one expert
  int layers = 0;
  int nextn_layers = 0;  ///< num_nextn_predict_layers: MTP layers the file promises
  AttentionKind attention = AttentionKind::kMla;
  MlaGeometry geometry;  ///< of MLA
  int q_lora_rank = 0;   ///< 0: one q_proj
  GqaGeometry gqa;       ///< of GQA
  bool qk_norm = false;  ///< GQA: RMSNorm of each query and key head before rope
  AttentionBias attention_bias;
  RopeConfig rope;
  MoeConfig moe;
  std::vector<FfnKind> layer_kinds;      ///< [layers]
  std::string layer_kinds_key;           ///< what decided them, as the file says it: "first_k_dense_replace 3"
  FfnKind nextn_kind = FfnKind::kDense;  ///< of the MTP layers
  double rms_norm_eps = 1e-6;            ///< input, post-attention and final norms, of the stream as it is kept
  double latent_norm_eps = 1e-6;         ///< q_a_layernorm and kv_a_layernorm: 1e-6 whatever rms_norm_eps says
  double embedding_scale = 1;            ///< multiplies embeddings on their way into the residual stream
  double final_norm_scale = 1;           ///< multiplies the final norm's output, so the hidden rows and the head see it
  bool tie_word_embeddings = false;
  int context_length = 0;  ///< max_position_embeddings

  std::optional<int> bos_id;
  std::vector<int> eos_ids;  ///< any of them ends a text; generation_config.json overrides config.json
  GenerationDefaults generation;

  std::optional<StoredQuantisation> quantised;  ///< latte quantised the weights; nothing: they are floats

  std::vector<std::string> assumed;  ///< keys that the file leaves out, with the family's value: "rms_norm_eps 1e-06"

  /// Width of what rope turns: p, or a whole head of GQA.
  int rope_width() const { return attention == AttentionKind::kGqa ? gqa.head_dim : geometry.p; }
  /// Values that one token caches in one layer: r + p, or keys and values of every group.
  int cache_width() const { return attention == AttentionKind::kGqa ? gqa.cache_width() : geometry.latent_width(); }
  /// How a row of these is stored as `type`. Q8: c as codes and k_pe in bf16, or every head's keys and values as codes.
  RowFormat cache_row(DType type) const {
    const bool grouped_queries = attention == AttentionKind::kGqa;
    return {.width = cache_width(),
            .dtype = type,
            .piece = grouped_queries ? CodedPiece{gqa.head_dim, 0} : CodedPiece{geometry.r, geometry.p}};
  }
};

/// The configuration in `json`; `source` names it in errors. Never throws, whatever the tree holds.
Result<ModelConfig> parse_config(const Json& json, std::string_view source);

/// Takes eos, bos and sampling defaults of a generation_config.json into `config`.
Status apply_generation_config(const Json& json, std::string_view source, ModelConfig& config);

/// What the configuration in `file` leaves to be taken for granted, a sentence each: keys it lacks, a model_type
/// that only the architecture explains.
std::vector<std::string> taken_for_granted(const ModelConfig& config, const std::string& file);

/// What the weight loader has to find for this configuration.
WeightSpec weight_spec(const ModelConfig& config);

}  // namespace latte
