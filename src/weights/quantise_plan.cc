#include "weights/quantise_plan.h"

#include <array>

namespace latte {
namespace {

struct NamedPlan {
  std::string_view word;
  QuantisePlan plan;
};

constexpr std::array kPlans = {
    NamedPlan{"q8", {}},
    NamedPlan{"q4", {.attention = DType::kQ4, .ffn = DType::kQ4}},
    NamedPlan{"q4:q8-attn", {.ffn = DType::kQ4}},
};

}  // namespace

std::optional<QuantisePlan> find_quantise_plan(std::string_view word) {
  for (const NamedPlan& named : kPlans) {
    if (named.word == word) return named.plan;
  }
  return std::nullopt;
}

std::string quantise_words() {
  std::string words;
  for (const NamedPlan& named : kPlans) words.append(words.empty() ? "" : ", ").append(named.word);
  return words;
}

}  // namespace latte
