#include "model/families/family.h"
#include "model/families/parts.h"

// Youtu-LLM, and the text part of Youtu-VL, whose configuration has the text model's keys at its root: the attention of
// DeepSeek V3 and dense feed-forward layers.

namespace latte {
namespace {

constexpr std::string_view kWords[] = {"youtu", "youtu_llm", "youtu_vl", "YoutuForCausalLM",
                                       "YoutuVLForConditionalGeneration"};

void read(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.tie_word_embeddings = true}, config);
  read_mla(reader, {.heads = 0, .r = 512, .p = 64, .n = 128, .v = 128}, 1536, config);
  read_rope(reader, config);
  reader.only("mlp_bias", false);
}

}  // namespace

extern const Family kYoutuFamily;
const Family kYoutuFamily{"youtu", kWords, read};

}  // namespace latte
