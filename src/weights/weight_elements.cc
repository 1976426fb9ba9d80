#include "weights/weight_elements.h"

#include "plan/choose_form.h"

namespace latte {
namespace {

// Every size is a 31-bit number that the configuration may name, so products of four of them outgrow 64 bits.
WideInt gqa_elements(const WeightSpec& spec) {
  const GqaGeometry& g = spec.gqa;
  const WideInt hidden = spec.hidden, queries = WideInt{g.heads} * g.head_dim,
                kv = 2 * WideInt{g.kv_heads} * g.head_dim;
  const WideInt norms = spec.qk_norm ? 2 * g.head_dim : 0;
  const WideInt biases = (spec.bias.inputs ? queries + kv : WideInt{0}) + (spec.bias.output ? hidden : WideInt{0});
  return hidden * (2 * queries + kv) + norms + biases;
}

WideInt attention_elements(const WeightSpec& spec) {
  if (spec.attention == AttentionKind::kGqa) return gqa_elements(spec);
  const MlaGeometry& g = spec.geometry;
  const WideInt hidden = spec.hidden, queries = WideInt{g.heads} * g.key_width(), rank = spec.q_lora_rank;
  const WideInt q = rank == 0 ? queries * hidden : rank * (hidden + 1 + queries);
  const WideInt kv = hidden * g.latent_width() + g.r + WideInt{g.heads} * g.expanded_width() * g.r;
  const WideInt biases =
      (spec.bias.inputs ? rank + g.latent_width() : WideInt{0}) + (spec.bias.output ? hidden : WideInt{0});
  return q + kv + WideInt{g.heads} * g.v * hidden + biases;
}

WideInt layer_elements(const WeightSpec& spec, FfnKind kind) {
  const WideInt hidden = spec.hidden;
  const WideInt norms = 2 * hidden;
  if (kind == FfnKind::kDense) return norms + attention_elements(spec) + 3 * hidden * spec.intermediate;
  const WideInt blocks = WideInt{spec.experts} + spec.shared_experts;
  const WideInt router = spec.experts * (hidden + (spec.router_bias ? 1 : 0));
  return norms + attention_elements(spec) + router + 3 * hidden * spec.moe_intermediate * blocks;
}

}  // namespace

std::optional<std::int64_t> weight_elements(const WeightSpec& spec, std::int64_t most) {
  const WideInt hidden = spec.hidden, table = spec.vocab * hidden;
  WideInt total = table + hidden + (spec.tie_word_embeddings ? 0 : table);
  const auto add = [&](int times, WideInt elements) {
    if (times == 0) return true;
    if (elements > most) return false;  // so that the sum below stays within the type
    total += times * elements;
    return total <= most;
  };
  for (const FfnKind kind : spec.layers) {
    if (!add(1, layer_elements(spec, kind))) return std::nullopt;
  }
  if (!add(spec.nextn_layers, layer_elements(spec, spec.nextn_kind) + 2 * hidden * hidden + 3 * hidden))
    return std::nullopt;
  return static_cast<std::int64_t>(total);
}

}  // namespace latte
