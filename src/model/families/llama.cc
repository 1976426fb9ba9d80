#include "model/families/family.h"
#include "model/families/parts.h"

// Llama 2 and 3: grouped-query attention, Llama 3's rope scaling.

namespace latte {
namespace {

constexpr std::string_view kLlamaWords[] = {"llama", "LlamaForCausalLM"};

void read_llama(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {}, config);
  read_gqa(reader, config);
  read_rope(reader, refused<double>(), config);
  reader.only("mlp_bias", false);
}

}  // namespace

extern const Family kLlamaFamily;
const Family kLlamaFamily{"llama", kLlamaWords, read_llama};

}  // namespace latte
