#include "model/families/family.h"
#include "model/families/parts.h"

// Youtu-LLM, and the text part of Youtu-VL, whose configuration has the text model's keys at its root: the attention of
// DeepSeek V3 and dense feed-forward layers.

namespace latte {
namespace {

constexpr std::string_view kYoutuWords[] = {"youtu", "youtu_llm", "youtu_vl", "YoutuForCausalLM",
                                            "YoutuVLForConditionalGeneration"};

void read_youtu(KeyReader& reader, ModelConfig& config) {
  read_sizes(reader, {.tie_word_embeddings = assumed(true)}, config);
  read_mla(reader, {}, config);
  read_rope(reader, refused<double>(), config);
  reader.only("mlp_bias", false);
}

}  // namespace

extern const Family kYoutuFamily;
const Family kYoutuFamily{"youtu", kYoutuWords, read_youtu};

}  // namespace latte
