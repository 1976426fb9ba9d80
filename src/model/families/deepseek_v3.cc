#include "model/families/family.h"
#include "model/families/parts.h"

// DeepSeek V3, V3.1 and R1; Moonlight (q_lora_rank null, one group); Kimi K2, whose architecture is DeepSeek's.

namespace latte {
namespace {

constexpr std::string_view kDeepseekV3Words[] = {"deepseek_v3", "kimi_k2", "joyai_llm_flash", "DeepseekV3ForCausalLM"};

void read_deepseek_v3(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader,
             {.vocab = assumed(129280),
              .hidden = assumed(7168),
              .intermediate = assumed(18432),
              .layers = assumed(61),
              .rms_norm_eps = assumed(1e-6)},
             config);
  constexpr MlaGeometry kReleased = kDeepSeekV3;
  read_mla(reader,
           {.heads = assumed(kReleased.heads),
            .r = assumed(kReleased.r),
            .p = assumed(kReleased.p),
            .n = assumed(kReleased.n),
            .v = assumed(kReleased.v),
            .q_lora_rank = assumed(1536)},
           config);
  read_rope(reader, refused<double>(), config);
  read_experts(reader,
               {.experts = assumed(256),
                .shared = assumed(1),
                .n_group = assumed(8),
                .topk_group = assumed(4),
                .top_k = assumed(8),
                .moe_intermediate = assumed(2048),
                .scaling = assumed(2.5),
                .norm_topk_prob = assumed(true)},
               config);
  const Absent<std::string> scoring =
      config.moe.experts > 0 ? assumed<std::string>("sigmoid") : means<std::string>("sigmoid");
  if (reader.one_of("scoring_func", scoring, {"sigmoid", "softmax"}) == "softmax")
    config.moe.scoring = RouterScoring::kSoftmax;
  reader.only_word("topk_method", "noaux_tc");
  read_layer_kinds(reader, assumed(3), config);
  read_nextn(reader, config);
}

}  // namespace

extern const Family kDeepseekV3Family;
const Family kDeepseekV3Family{"deepseek_v3", kDeepseekV3Words, read_deepseek_v3};

}  // namespace latte
