#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace latte::tensor_names {

// Names of the Hugging Face layout of a model. Layer parts are relative to "model.layers.<N>.".

inline constexpr std::string_view kEmbed = "model.embed_tokens.weight";
inline constexpr std::string_view kNorm = "model.norm.weight";
inline constexpr std::string_view kHead = "lm_head.weight";

inline constexpr std::string_view kInputNorm = "input_layernorm.weight";
inline constexpr std::string_view kPostAttentionNorm = "post_attention_layernorm.weight";

inline constexpr std::string_view kQ = "self_attn.q_proj.weight";
inline constexpr std::string_view kQA = "self_attn.q_a_proj.weight";
inline constexpr std::string_view kQANorm = "self_attn.q_a_layernorm.weight";
inline constexpr std::string_view kQB = "self_attn.q_b_proj.weight";
inline constexpr std::string_view kKvA = "self_attn.kv_a_proj_with_mqa.weight";
inline constexpr std::string_view kKvANorm = "self_attn.kv_a_layernorm.weight";
inline constexpr std::string_view kKvB = "self_attn.kv_b_proj.weight";
inline constexpr std::string_view kKvBBias = "self_attn.kv_b_proj.bias";
inline constexpr std::string_view kO = "self_attn.o_proj.weight";
inline constexpr std::string_view kQABias = "self_attn.q_a_proj.bias";
inline constexpr std::string_view kKvABias = "self_attn.kv_a_proj_with_mqa.bias";
inline constexpr std::string_view kOBias = "self_attn.o_proj.bias";

inline constexpr std::string_view kK = "self_attn.k_proj.weight";  ///< of grouped-query attention, with kQ and kO
inline constexpr std::string_view kV = "self_attn.v_proj.weight";
inline constexpr std::string_view kQBias = "self_attn.q_proj.bias";
inline constexpr std::string_view kKBias = "self_attn.k_proj.bias";
inline constexpr std::string_view kVBias = "self_attn.v_proj.bias";
inline constexpr std::string_view kQNorm = "self_attn.q_norm.weight";
inline constexpr std::string_view kKNorm = "self_attn.k_norm.weight";

inline constexpr std::string_view kDense = "mlp";
inline constexpr std::string_view kShared = "mlp.shared_experts";
// Of a block: "mlp", "mlp.shared_experts" or one expert.
inline constexpr std::string_view kGate = ".gate_proj.weight";
inline constexpr std::string_view kUp = ".up_proj.weight";
inline constexpr std::string_view kDown = ".down_proj.weight";
inline constexpr std::string_view kRouter = "mlp.gate.weight";
inline constexpr std::string_view kRouterBias = "mlp.gate.e_score_correction_bias";
inline constexpr std::string_view kFusedGateUp = "mlp.experts.gate_up_proj";  ///< [E, 2I, D], gate rows first
inline constexpr std::string_view kFusedDown = "mlp.experts.down_proj";       ///< [E, D, I]

inline constexpr std::string_view kMtpEmbeddingNorm = "enorm.weight";
inline constexpr std::string_view kMtpHiddenNorm = "hnorm.weight";
inline constexpr std::string_view kMtpProjection = "eh_proj.weight";
inline constexpr std::string_view kMtpEmbed = "embed_tokens.weight";
inline constexpr std::string_view kMtpNorm = "shared_head.norm.weight";
inline constexpr std::string_view kMtpHead = "shared_head.head.weight";

inline constexpr std::string_view kInvFreqSuffix = "rotary_emb.inv_freq";

inline std::string layer_prefix(int layer) { return fmt::format("model.layers.{}.", layer); }
inline std::string expert(int index) { return fmt::format("mlp.experts.{}", index); }

}  // namespace latte::tensor_names
