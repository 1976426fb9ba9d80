#include <array>

#include "model/families/family.h"

namespace latte {
namespace {

using Words = std::string_view;

constexpr Words kDeepseekV32[] = {"deepseek_v32", "DeepseekV32ForCausalLM"};
constexpr Words kDeepseekV4[] = {"deepseek_v4", "DeepseekV4ForCausalLM"};
constexpr Words kGlmMoeDsa[] = {"glm_moe_dsa", "GlmMoeDsaForCausalLM"};
constexpr Words kGlm5Next[] = {"glm5_next", "glm5_next_text", "Glm5NextForCausalLM",
                               "Glm5NextForConditionalGeneration"};
constexpr Words kKimiLinear[] = {"kimi_linear", "KimiLinearForCausalLM"};
constexpr Words kKimiK3[] = {"kimi_k3", "KimiK3ForCausalLM", "KimiK3ForConditionalGeneration"};
constexpr Words kLongcatFlash[] = {"longcat_flash", "LongcatFlashForCausalLM"};
constexpr Words kLongcatNgram[] = {"longcat_flash_ngram", "LongcatFlashNgramForCausalLM"};
constexpr Words kLongcatSparse[] = {"longcat_flash_sparse", "LongcatCausalLM"};
constexpr Words kBailing[] = {"bailing_hybrid", "bailing_moe_v3", "BailingMoeV3ForCausalLM"};
constexpr Words kQwen3Next[] = {"qwen3_next", "Qwen3NextForCausalLM"};

constexpr std::array kRefused = {
    RefusedFamily{"deepseek_v32", kDeepseekV32, "its attention is sparse: an indexer picks the rows", "deepseek_v3"},
    RefusedFamily{"deepseek_v4", kDeepseekV4, "its attention is sparse over compressed rows", "deepseek_v3"},
    RefusedFamily{"glm_moe_dsa", kGlmMoeDsa, "its attention is sparse: an indexer picks the rows", "glm4_moe_lite"},
    RefusedFamily{"glm5_next", kGlm5Next, "most of its layers have linear attention, the others sparse",
                  "glm4_moe_lite"},
    RefusedFamily{"kimi_linear", kKimiLinear, "most of its layers have linear attention", "deepseek_v3"},
    RefusedFamily{"kimi_k3", kKimiK3, "most of its layers have linear attention", "deepseek_v3"},
    RefusedFamily{"longcat_flash", kLongcatFlash, "its layers have two attentions each, and experts that pass through",
                  "deepseek_v3"},
    RefusedFamily{"longcat_flash_ngram", kLongcatNgram, "its layers have two attentions each, and n-gram embeddings",
                  "deepseek_v3"},
    RefusedFamily{"longcat_flash_sparse", kLongcatSparse, "its attention is sparse, and its embeddings are of n-grams",
                  "deepseek_v3"},
    RefusedFamily{"bailing_moe_v3", kBailing, "most of its layers have linear attention", "deepseek_v3"},
    RefusedFamily{"qwen3_next", kQwen3Next, "most of its layers have linear attention", "qwen3_moe"},
};

}  // namespace

std::span<const RefusedFamily> refused_families() { return kRefused; }

}  // namespace latte
