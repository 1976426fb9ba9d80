#include "decode/logit_rules.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <unordered_set>

#include "base/fail.h"

namespace latte {
namespace {

constexpr double kMostBias = 1e4;
constexpr double kMostPenalty = 100;
constexpr double kLeastRepeat = 0.01;

Status check_bias(const std::vector<LogitBias>& bias, int vocab) {
  std::unordered_set<TokenId> forbidden;
  for (const LogitBias& one : bias) {
    if (one.id < 0 || one.id >= vocab) {
      return fail(ErrorKind::kInvalidInput, "[sampling] logit-bias of id {}: expected an id from 0 to {}, the model's",
                  one.id, vocab - 1);
    }
    const bool forbids = one.bias == -std::numeric_limits<double>::infinity();
    if (!forbids && !(std::abs(one.bias) <= kMostBias)) {
      return fail(ErrorKind::kInvalidInput,
                  "[sampling] logit-bias {} of id {}: expected a number from {} to {}, or -inf to forbid the token",
                  one.bias, one.id, -kMostBias, kMostBias);
    }
    if (forbids) forbidden.insert(one.id);
  }
  if (forbidden.size() < static_cast<std::size_t>(vocab)) return {};
  return fail(ErrorKind::kInvalidInput,
              "[sampling] logit-bias forbids all {} ids: expected at least one that may be chosen", vocab);
}

Status check_penalty(const char* name, double value) {
  if (std::abs(value) <= kMostPenalty) return {};
  return fail(ErrorKind::kInvalidInput, "[sampling] {} {}: expected a number from {} to {}, 0 for none", name, value,
              -kMostPenalty, kMostPenalty);
}

float* logit_of(std::span<float> logits, TokenId token) {
  const bool inside = token >= 0 && static_cast<std::size_t>(token) < logits.size();
  return inside ? &logits[static_cast<std::size_t>(token)] : nullptr;
}

}  // namespace

Status check_logit_rules(const LogitRules& rules, int vocab) {
  if (!(rules.repeat_penalty >= kLeastRepeat && rules.repeat_penalty <= kMostPenalty)) {
    return fail(ErrorKind::kInvalidInput, "[sampling] repeat-penalty {}: expected a number from {} to {}, 1 for none",
                rules.repeat_penalty, kLeastRepeat, kMostPenalty);
  }
  if (rules.repeat_last_n < -1) {
    return fail(ErrorKind::kInvalidInput,
                "[sampling] repeat-last-n {}: expected a count of tokens, 0 for none or -1 for all",
                rules.repeat_last_n);
  }
  if (Status sane = check_penalty("presence-penalty", rules.presence_penalty); !sane.ok()) return sane;
  if (Status sane = check_penalty("frequency-penalty", rules.frequency_penalty); !sane.ok()) return sane;
  return check_bias(rules.bias, vocab);
}

void apply_logit_rules(const LogitRules& rules, const TokenHistory& history, std::span<float> logits) {
  for (const LogitBias& one : rules.bias) {
    if (float* const logit = logit_of(logits, one.id)) *logit = static_cast<float>(*logit + one.bias);
  }
  if (rules.repeat_penalty != 1) {
    for (const auto& [token, count] : history.recent()) {
      float* const logit = logit_of(logits, token);
      if (logit == nullptr) continue;
      *logit = static_cast<float>(*logit > 0 ? *logit / rules.repeat_penalty : *logit * rules.repeat_penalty);
    }
  }
  if (rules.presence_penalty == 0 && rules.frequency_penalty == 0) return;
  for (const auto& [token, count] : history.generated()) {
    if (float* const logit = logit_of(logits, token)) {
      *logit = static_cast<float>(*logit - rules.presence_penalty - count * rules.frequency_penalty);
    }
  }
}

}  // namespace latte
