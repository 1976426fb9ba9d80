#include "base/fail.h"
#include "model/families/family.h"
#include "model/families/parts.h"

// GLM-4.7-Flash: the mathematics of DeepSeek V3 without groups. Its MTP layer has its own embedding and head. The norms
// of the latents keep 1e-6 beside an rms_norm_eps of 1e-5, as in transformers.

namespace latte {
namespace {

constexpr std::string_view kWords[] = {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"};

void read(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.rms_norm_eps = 1e-5}, config);
  read_mla(reader, {.heads = 0, .r = 512, .p = 64, .n = 192, .v = 256}, 768, config);
  read_rope(reader, config);
  if (const double turned = reader.positive("partial_rotary_factor", 1, 1); turned != 1)
    reader.refuse("partial_rotary_factor", fmt::format("{}", turned), "1", ErrorKind::kUnsupported);
  read_experts(reader, {.shared = 1, .top_k = 4, .scaling = 1.8}, config);
  reader.one_of("scoring_func", {"sigmoid"});
  reader.one_of("topk_method", {"noaux_tc"});
  read_layer_kinds(reader, 1, config);
  read_nextn(reader, config);
}

}  // namespace

extern const Family kGlm4MoeLiteFamily;
const Family kGlm4MoeLiteFamily{"glm4_moe_lite", kWords, read};

}  // namespace latte
