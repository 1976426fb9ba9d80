#include "model/families/family.h"
#include "model/families/parts.h"

// Qwen2 and 2.5: grouped-query attention with a bias on q, k and v, never on the output.

namespace latte {
namespace {

constexpr std::string_view kQwen2Words[] = {"qwen2", "Qwen2ForCausalLM"};

void read_qwen2(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_gqa(reader, config);
  config.attention_bias = {.inputs = true, .output = false};
  read_rope(reader, refused<double>(), config);
}

}  // namespace

extern const Family kQwen2Family;
const Family kQwen2Family{"qwen2", kQwen2Words, read_qwen2};

}  // namespace latte
