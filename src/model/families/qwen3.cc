#include "model/families/family.h"
#include "model/families/parts.h"

// Qwen3: grouped-query attention with a norm of every query and key head; the head width is given, not hidden / heads.

namespace latte {
namespace {

constexpr std::string_view kQwen3Words[] = {"qwen3", "Qwen3ForCausalLM"};

void read_qwen3(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_gqa(reader, config);
  config.qk_norm = true;
  read_rope(reader, refused<double>(), config);
}

}  // namespace

extern const Family kQwen3Family;
const Family kQwen3Family{"qwen3", kQwen3Words, read_qwen3};

}  // namespace latte
