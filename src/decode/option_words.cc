#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "base/contract.h"
#include "base/fail.h"
#include "latte/options.h"

namespace latte {
namespace {

template <class Value>
struct Word {
  std::string_view text;
  Value value;
};

// The first word of a value is the one it prints as; later ones are aliases.
constexpr std::array kComputeWords = {Word<ComputeType>{"auto", ComputeType::kAuto},
                                      Word<ComputeType>{"f32", ComputeType::kF32},
                                      Word<ComputeType>{"bf16", ComputeType::kBf16}};
constexpr std::array kCacheWords = {
    Word<CacheType>{"auto", CacheType::kAuto}, Word<CacheType>{"bf16", CacheType::kBf16},
    Word<CacheType>{"f32", CacheType::kF32},   Word<CacheType>{"f16", CacheType::kF16},
    Word<CacheType>{"q8", CacheType::kQ8},     Word<CacheType>{"q8_0", CacheType::kQ8},
    Word<CacheType>{"fp8", CacheType::kFp8}};
constexpr std::array kPathWords = {
    Word<PathChoice>{"auto", PathChoice::kAuto}, Word<PathChoice>{"absorbed", PathChoice::kAbsorbed},
    Word<PathChoice>{"materialised", PathChoice::kMaterialised}, Word<PathChoice>{"formula", PathChoice::kFormula}};
constexpr std::array kNumericsWords = {Word<Numerics>{"fast", Numerics::kFast},
                                       Word<Numerics>{"pinned", Numerics::kPinned}};
constexpr std::array kQuantizeWords = {Word<Quantize>{"none", Quantize::kNone}, Word<Quantize>{"q8", Quantize::kQ8},
                                       Word<Quantize>{"q4", Quantize::kQ4},
                                       Word<Quantize>{"q4:q8-attn", Quantize::kQ4Q8Attention}};
constexpr std::array kSpecWords = {Word<SpecType>{"none", SpecType::kNone}, Word<SpecType>{"mtp", SpecType::kMtp},
                                   Word<SpecType>{"draft", SpecType::kDraft},
                                   Word<SpecType>{"lookup", SpecType::kLookup},
                                   Word<SpecType>{"auto", SpecType::kAuto}};
constexpr std::array kRoleWords = {Word<StepRole>{"auto", StepRole::kAuto}, Word<StepRole>{"prompt", StepRole::kPrompt},
                                   Word<StepRole>{"generated", StepRole::kGenerated}};

template <class Words, class Value>
std::string_view word_in(const Words& words, Value value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  expects(false, "every value of an option has a word");
  return {};
}

template <class Value, std::size_t kCount>
Result<Value> value_in(const std::array<Word<Value>, kCount>& words, std::string_view what, std::string_view text) {
  std::vector<std::string_view> known;
  for (const Word<Value>& word : words) {
    if (word.text == text) return word.value;
    known.push_back(word.text);
  }
  return fail(ErrorKind::kInvalidInput, "{} \"{}\", expected one of {}", what, text, fmt::join(known, ", "));
}

}  // namespace

std::string_view word(ComputeType value) { return word_in(kComputeWords, value); }
std::string_view word(CacheType value) { return word_in(kCacheWords, value); }
std::string_view word(PathChoice value) { return word_in(kPathWords, value); }
std::string_view word(Numerics value) { return word_in(kNumericsWords, value); }
std::string_view word(Quantize value) { return word_in(kQuantizeWords, value); }
std::string_view word(SpecType value) { return word_in(kSpecWords, value); }
std::string_view word(StepRole value) { return word_in(kRoleWords, value); }

Result<ComputeType> parse_compute_type(std::string_view text) { return value_in(kComputeWords, "dtype", text); }
Result<CacheType> parse_cache_type(std::string_view text) { return value_in(kCacheWords, "cache type", text); }
Result<PathChoice> parse_path(std::string_view text) { return value_in(kPathWords, "path", text); }
Result<Numerics> parse_numerics(std::string_view text) { return value_in(kNumericsWords, "numerics", text); }
Result<Quantize> parse_quantize(std::string_view text) { return value_in(kQuantizeWords, "quantize", text); }
Result<SpecType> parse_spec_type(std::string_view text) { return value_in(kSpecWords, "spec type", text); }
Result<StepRole> parse_step_role(std::string_view text) { return value_in(kRoleWords, "role", text); }

}  // namespace latte
