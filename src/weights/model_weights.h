#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "io/checkpoint.h"
#include "tensor/mat_ref.h"
#include "weights/weight_arena.h"

namespace latte {

// All matrices are [out, in], row-major, F32 or BF16 as the checkpoint stores them, or grouped (tensor/grouped.h);
// norms, routers and router biases are F32. A vector is a matrix of one row. What a model does not have is empty().

/// One MLA layer: either q_proj, or q_a, q_a_norm and q_b.
struct MlaWeights {
  ConstMatRef q_proj;                       ///< [H*(n+p), D]
  ConstMatRef q_a;                          ///< [rq, D]
  ConstMatRef q_a_norm;                     ///< [1, rq]
  ConstMatRef q_b;                          ///< [H*(n+p), rq]
  ConstMatRef kv_a;                         ///< [r+p, D]
  ConstMatRef kv_a_norm;                    ///< [1, r]
  ConstStackRef w_uk;                       ///< [H, n, r]
  ConstStackRef w_uv;                       ///< [H, v, r]
  ConstMatRef o_proj;                       ///< [D, H*v]
  ConstMatRef q_a_bias, kv_a_bias, o_bias;  ///< [1, out], F32; empty without attention_bias
};

/// One layer of grouped-query attention.
struct GqaWeights {
  ConstMatRef q_proj;                          ///< [H*d, D]
  ConstMatRef k_proj, v_proj;                  ///< [G*d, D], G key and value heads
  ConstMatRef o_proj;                          ///< [D, H*d]
  ConstMatRef q_norm, k_norm;                  ///< [1, d], over each head; empty in families without them
  ConstMatRef q_bias, k_bias, v_bias, o_bias;  ///< [1, out], F32; empty in families without them
};

/// The feed-forward half: dense, or router, experts and perhaps a shared expert.
struct FfnWeights {
  ExpertWeights dense;
  ConstMatRef router;       ///< [E, D]
  ConstMatRef router_bias;  ///< [1, E], empty in families without one
  std::vector<ExpertWeights> experts;
  ExpertWeights shared;  ///< one block of width shared * I; empty without shared experts
  bool is_moe = false;
};

struct LayerWeights {
  ConstMatRef input_norm;           ///< [1, D]
  ConstMatRef post_attention_norm;  ///< [1, D]
  MlaWeights attention;             ///< of a model with latent attention
  GqaWeights gqa;                   ///< of the others
  FfnWeights ffn;
};

/// One multi-token-prediction layer. embed, norm and head are the main model's where the checkpoint has no own ones.
struct MtpWeights {
  ConstMatRef enorm;    ///< [1, D]
  ConstMatRef hnorm;    ///< [1, D]
  ConstMatRef eh_proj;  ///< [D, 2D], embedding first
  ConstMatRef embed;    ///< [vocab, D]
  ConstMatRef norm;     ///< [1, D]
  ConstMatRef head;     ///< [vocab, D]
  LayerWeights layer;
};

struct DroppedTensor {
  std::string name;
  std::string reason;
};

/// What loading found, for `inspect` and for people.
struct LoadReport {
  std::int64_t used = 0;  ///< tensors of the checkpoint in use
  std::vector<DroppedTensor> dropped;
  int layers = 0;
  int folded_layers = 0;  ///< layers whose kv_b_proj is split for the absorbed form, MTP layers not counted; 0: GQA
  bool mtp_present = false;
  std::string mtp_reason;             ///< "1 layer", or why there is none
  bool mtp_incomplete = false;        ///< a layer was left out because one of its tensors is missing
  std::string layers_past;            ///< of a layer that the configuration has no place for: why; empty: none
  bool tied_head_unused = false;      ///< the file holds a head that tie_word_embeddings makes unused
  std::int64_t parameters = 0;        ///< elements in use, MTP layers not counted
  std::int64_t mtp_parameters = 0;    ///< elements of MTP layers in use
  std::int64_t bytes = 0;             ///< of all tensors in use, as stored or as quantised
  std::int64_t copied_bytes = 0;      ///< held beside the map: norms, routers, converted and misaligned tensors
  DType stored_dtype = DType::kBf16;  ///< what most bytes are stored in, or were before latte quantised them
  std::int64_t quantised_bytes = 0;   ///< of grouped matrices, made at load or stored; 0: there are none
};

/// The weights of a model and the memory they live in. Move-only; views survive moves.
struct ModelWeights {
  ConstMatRef embed;  ///< [vocab, D]
  ConstMatRef norm;   ///< [1, D]
  ConstMatRef head;   ///< [vocab, D]
  std::vector<LayerWeights> layers;
  std::vector<MtpWeights> mtp;
  LoadReport report;
  std::string name_root;  ///< before every tensor's name: "language_model." of a text model inside a larger one

  Checkpoint checkpoint;                   ///< owner of mapped tensors
  std::vector<std::vector<float>> copies;  ///< owner of converted ones
  WeightArena made;                        ///< owner of those that no file holds: quantised, or random
};

}  // namespace latte
