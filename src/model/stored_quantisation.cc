#include "model/stored_quantisation.h"

#include <algorithm>
#include <initializer_list>

#include "base/fail.h"
#include "model/key_reader.h"
#include "tensor/grouped.h"

namespace latte {
namespace {

constexpr const char* kKey = "quantization_config";
constexpr const char* kMethod = "latte";
constexpr int kVersion = 1;  ///< of the keys below
constexpr std::size_t kDigestDigits = 32;

constexpr DType kSourceTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBf16};

std::string read_digest(KeyReader& reader, const char* key) {
  std::string digits = reader.text(key, refused<std::string>());
  const bool sound = digits.size() == kDigestDigits && std::all_of(digits.begin(), digits.end(), [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                     });
  if (!sound) reader.refuse(key, quote_name(digits), "32 hexadecimal digits: run latte quantize again");
  return digits;
}

std::map<std::string, int> read_sizes(KeyReader& reader) {
  std::map<std::string, int> sizes;
  const Json* found = reader.find("sizes");
  const bool sound = found != nullptr && found->is_object() && !found->empty();
  if (!sound) {
    reader.refuse("sizes", found == nullptr ? "nothing" : brief_json(*found),
                  "the sizes of the matrices: run latte quantize again");
    return sizes;
  }
  KeyReader each(*found, reader.source(), std::string(kKey) + ".sizes.");
  constexpr int kMost = 1 << 30;
  for (const auto& [key, value] : found->items()) sizes[key] = each.integer(key.c_str(), refused<int>(), 0, kMost);
  reader.absorb(each);
  return sizes;
}

/// A number that only one build reads.
void check_number(KeyReader& reader, const char* key, int known) {
  constexpr int kMost = 1 << 30;
  const int arrived = reader.integer(key, refused<int>(), 0, kMost);
  if (arrived == known) return;
  reader.refuse(key, std::to_string(arrived),
                fmt::format("{}, which this build reads: run latte quantize on the original model again", known),
                ErrorKind::kUnsupported);
}

}  // namespace

Json quantisation_json(const StoredQuantisation& quantisation) {
  return {{"quant_method", kMethod},
          {"version", kVersion},
          {"group_layout", kGroupedLayout},
          {"quantize", quantisation.word},
          {"source_dtype", dtype_name(quantisation.storage.source_dtype)},
          {"source_weights", quantisation.source_weights},
          {"weights", quantisation.weights},
          {"sizes", quantisation.sizes}};
}

std::map<std::string, int> matrix_sizes(const WeightSpec& spec) {
  const MlaGeometry& mla = spec.geometry;
  const GqaGeometry& gqa = spec.gqa;
  const bool latent = spec.attention == AttentionKind::kMla;
  std::map<std::string, int> sizes = {{"hidden_size", spec.hidden},
                                      {"vocab_size", spec.vocab},
                                      {"intermediate_size", spec.intermediate},
                                      {"moe_intermediate_size", spec.moe_intermediate},
                                      {"n_shared_experts", spec.shared_experts},
                                      {"num_attention_heads", latent ? mla.heads : gqa.heads}};
  if (latent) {
    sizes.insert({{"q_lora_rank", spec.q_lora_rank},
                  {"kv_lora_rank", mla.r},
                  {"qk_rope_head_dim", mla.p},
                  {"qk_nope_head_dim", mla.n},
                  {"v_head_dim", mla.v}});
  } else {
    sizes.insert({{"num_key_value_heads", gqa.kv_heads}, {"head_dim", gqa.head_dim}});
  }
  return sizes;
}

Status check_matrix_sizes(const StoredQuantisation& quantisation, const WeightSpec& spec, std::string_view source) {
  for (const auto& [key, size] : matrix_sizes(spec)) {
    const auto made = quantisation.sizes.find(key);
    if (made == quantisation.sizes.end()) {
      return fail(
          ErrorKind::kInvalidInput,
          "{}: key \"{}.sizes\" lacks {}, expected the size that the folder's matrices were quantised with: put "
          "config.json back, or run latte quantize on the original model again",
          source, kKey, key);
    }
    if (made->second == size) continue;
    return fail(ErrorKind::kInvalidInput,
                "{}: {} is {}, expected {}, which the folder's matrices were quantised with: put config.json back, or "
                "run latte quantize on the original model again",
                source, key, size, made->second);
  }
  return {};
}

Result<std::optional<StoredQuantisation>> read_quantisation(const Json& config, std::string_view source) {
  const auto entry = config.find(kKey);
  if (entry == config.end() || !entry->is_object()) return std::optional<StoredQuantisation>();
  const auto method = entry->find("quant_method");
  if (method == entry->end() || *method != kMethod) return std::optional<StoredQuantisation>();

  KeyReader reader(*entry, source, std::string(kKey) + ".");
  StoredQuantisation found;
  check_number(reader, "version", kVersion);
  check_number(reader, "group_layout", kGroupedLayout);
  found.word = reader.text("quantize", refused<std::string>());
  if (const auto plan = find_quantise_plan(found.word); plan.has_value()) {
    found.storage.plan = *plan;
  } else {
    reader.refuse("quantize", quote_name(found.word), quantise_words());
  }
  const std::string dtype = reader.text("source_dtype", refused<std::string>());
  const auto* type = std::find_if(std::begin(kSourceTypes), std::end(kSourceTypes),
                                  [&](DType known) { return dtype_name(known) == dtype; });
  if (type == std::end(kSourceTypes)) {
    reader.refuse("source_dtype", quote_name(dtype), "F64, F32, F16 or BF16");
  } else {
    found.storage.source_dtype = *type;
  }
  found.source_weights = read_digest(reader, "source_weights");
  found.weights = read_digest(reader, "weights");
  found.sizes = read_sizes(reader);
  if (!reader.ok()) return reader.error();
  return std::optional(std::move(found));
}

}  // namespace latte
