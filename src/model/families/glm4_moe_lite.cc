#include "base/fail.h"
#include "model/families/family.h"
#include "model/families/parts.h"

// GLM-4.7-Flash: the mathematics of DeepSeek V3 without groups. Its MTP layer has its own embedding and head. The norms
// of the latents keep 1e-6 beside an rms_norm_eps of 1e-5, as in transformers.

namespace latte {
namespace {

constexpr std::string_view kGlm4MoeLiteWords[] = {"glm4_moe_lite", "Glm4MoeLiteForCausalLM"};

void read_glm4_moe_lite(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_mla(reader, {}, config);
  read_rope(reader, refused<double>(), config);
  if (const double turned = reader.positive("partial_rotary_factor", means(1.0), 1); turned != 1)
    reader.refuse("partial_rotary_factor", fmt::format("{}", turned), "1", ErrorKind::kUnsupported);
  read_experts(reader, {}, config);
  reader.only_word("scoring_func", "sigmoid");
  reader.only_word("topk_method", "noaux_tc");
  read_layer_kinds(reader, assumed(1), config);
  read_nextn(reader, config);
}

}  // namespace

extern const Family kGlm4MoeLiteFamily;
const Family kGlm4MoeLiteFamily{"glm4_moe_lite", kGlm4MoeLiteWords, read_glm4_moe_lite};

}  // namespace latte
