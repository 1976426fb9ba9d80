#include "model/families/family.h"
#include "model/families/parts.h"

// DeepSeek V2, V2.5 and V2-Lite: latent attention as V3's, a softmax router without a bias.

namespace latte {
namespace {

constexpr std::string_view kDeepseekV2Words[] = {"deepseek_v2", "DeepseekV2ForCausalLM"};

void read_deepseek_v2(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.rms_norm_eps = assumed(1e-6)}, config);
  read_mla(reader,
           {.r = assumed(512), .p = assumed(64), .n = assumed(128), .v = assumed(128), .q_lora_rank = assumed(1536)},
           config);
  read_rope(reader, assumed(1e4), config);
  read_experts(reader, {.scaling = assumed(1.0), .norm_topk_prob = means(false)}, config);
  MoeConfig& moe = config.moe;
  moe.scoring = RouterScoring::kSoftmax;
  moe.bias = false;
  // No released model sets norm_topk_prob; the implementation that decides (transformers) pays no heed to it.
  moe.norm_topk_prob = false;
  reader.only_word("scoring_func", "softmax");
  const Absent<std::string> method = moe.experts > 0 ? refused<std::string>() : means(std::string("greedy"));
  if (reader.one_of("topk_method", method, {"greedy", "group_limited_greedy"}) == "greedy") {
    moe.n_group = moe.topk_group = 1;
  } else {
    moe.group_score = GroupScore::kMax;
  }
  read_layer_kinds(reader, assumed(1), config);
}

}  // namespace

extern const Family kDeepseekV2Family;
const Family kDeepseekV2Family{"deepseek_v2", kDeepseekV2Words, read_deepseek_v2};

}  // namespace latte
