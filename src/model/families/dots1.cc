#include "model/families/family.h"
#include "model/families/parts.h"

// dots.llm1: the attention of Qwen3 (not latent attention, as some texts say) and the experts of DeepSeek V3.

namespace latte {
namespace {

constexpr std::string_view kDots1Words[] = {"dots1", "Dots1ForCausalLM"};

void read_dots1(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_gqa(reader, config);
  config.qk_norm = true;
  read_rope(reader, refused<double>(), config);
  read_experts(reader, {}, config);
  reader.one_of("scoring_func", means<std::string>("sigmoid"),
                {"noaux_tc", "sigmoid"});  // released files give the method's name here
  read_layer_kinds(reader, refused<int>(), config);
}

}  // namespace

extern const Family kDots1Family;
const Family kDots1Family{"dots1", kDots1Words, read_dots1};

}  // namespace latte
