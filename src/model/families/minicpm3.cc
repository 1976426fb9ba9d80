#include <cmath>

#include "base/fail.h"
#include "model/families/family.h"
#include "model/families/parts.h"

// MiniCPM3: latent attention with half-split rope, LongRoPE, and three scalings. Every residual branch is multiplied by
// s = scale_depth / sqrt(layers). The stream is kept divided by s instead, which is the same model: a branch then adds
// as it is, embeddings come in divided by s, and since RMSNorm of x / s with eps / s^2 is RMSNorm of x with eps, every
// norm of the stream has eps / s^2.

namespace latte {
namespace {

constexpr std::string_view kMiniCpm3Words[] = {"minicpm3", "MiniCPM3ForCausalLM"};

void read_minicpm3(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.tie_word_embeddings = assumed(true)}, config);
  const int heads = reader.size("num_attention_heads", refused<int>(), kMaxHeads);
  read_mla(reader, {.v = means(config.hidden / heads)}, config);
  config.rope.interleave = false;
  read_rope(reader, refused<double>(), config);
  const double branch =
      reader.positive("scale_depth", refused<double>(), 1e6) / std::sqrt(static_cast<double>(config.layers));
  if (branch < 1e-6)
    reader.refuse("scale_depth", fmt::format("{} x sqrt(layers)", branch), "at least 1e-6 x sqrt(layers)");
  config.embedding_scale = reader.positive("scale_emb", refused<double>(), 1e6) / branch;
  config.rms_norm_eps /= branch * branch;
  // The head reads the hidden state divided by hidden_size / dim_model_base.
  config.final_norm_scale = reader.positive("dim_model_base", refused<double>(), 1e9) / config.hidden;
}

}  // namespace

extern const Family kMiniCpm3Family;
const Family kMiniCpm3Family{"minicpm3", kMiniCpm3Words, read_minicpm3};

}  // namespace latte
