#include "model/families/family.h"
#include "model/families/parts.h"

// DeepSeek V2, V2.5 and V2-Lite: latent attention as V3's, a softmax router without a bias.

namespace latte {
namespace {

constexpr std::string_view kWords[] = {"deepseek_v2", "DeepseekV2ForCausalLM"};

void read(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_mla(reader, {.heads = 0, .r = 512, .p = 64, .n = 128, .v = 128}, 1536, config);
  read_rope(reader, config);
  read_experts(reader, {.shared = 2, .topk_group = 3}, config);
  MoeConfig& moe = config.moe;
  moe.scoring = RouterScoring::kSoftmax;
  moe.bias = false;
  // No released model sets norm_topk_prob; the implementation that decides (transformers) pays no heed to it.
  moe.norm_topk_prob = false;
  reader.one_of("scoring_func", {"softmax"});
  if (reader.one_of("topk_method", {"greedy", "group_limited_greedy"}) == "greedy") {
    moe.n_group = moe.topk_group = 1;
  } else {
    moe.group_score = GroupScore::kMax;
  }
  read_layer_kinds(reader, 1, config);
}

}  // namespace

extern const Family kDeepseekV2Family;
const Family kDeepseekV2Family{"deepseek_v2", kWords, read};

}  // namespace latte
