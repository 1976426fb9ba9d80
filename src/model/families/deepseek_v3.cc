#include "model/families/family.h"
#include "model/families/parts.h"

// DeepSeek V3, V3.1 and R1; Moonlight (q_lora_rank null, one group); Kimi K2, whose architecture is DeepSeek's.

namespace latte {
namespace {

constexpr std::string_view kWords[] = {"deepseek_v3", "kimi_k2", "joyai_llm_flash", "DeepseekV3ForCausalLM"};

void read(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.vocab = 129280, .hidden = 7168, .intermediate = 18432, .layers = 61, .context = 4096}, config);
  config.eos_ids = read_ids(reader, "eos_token_id", {1});
  read_mla(reader, kDeepSeekV3, 1536, config);
  read_rope(reader, config);
  read_experts(reader,
               {.experts = 256,
                .shared = 1,
                .n_group = 8,
                .topk_group = 4,
                .top_k = 8,
                .moe_intermediate = 2048,
                .scaling = 2.5},
               config);
  if (reader.one_of("scoring_func", {"sigmoid", "softmax"}) == "softmax") config.moe.scoring = RouterScoring::kSoftmax;
  reader.one_of("topk_method", {"noaux_tc"});
  read_layer_kinds(reader, 3, config);
  read_nextn(reader, config);
}

}  // namespace

extern const Family kDeepseekV3Family;
const Family kDeepseekV3Family{"deepseek_v3", kWords, read};

}  // namespace latte
