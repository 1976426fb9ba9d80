#include "run_arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>

#include "outcome.h"

namespace latte::cli {
namespace {

template <class T>
std::optional<T> whole_number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || text.starts_with('-')) return std::nullopt;
  return value;
}

/// ID, then + or - or =, then a number; after = it has a sign of its own.
std::optional<BiasTerm> parse_term(std::string_view term) {
  const std::size_t sign_at = term.find_first_of("+-=");
  if (sign_at == std::string_view::npos) return std::nullopt;
  const std::string_view id = term.substr(0, sign_at);
  std::string_view number = term.substr(sign_at + 1);
  char sign = term[sign_at];
  if (sign == '=') {
    const bool has_sign = number.starts_with('-') || number.starts_with('+');
    sign = has_sign ? number.front() : '+';
    number.remove_prefix(has_sign ? 1 : 0);
  }
  const std::optional<double> size = whole_number<double>(number);
  const std::optional<std::int32_t> token = whole_number<std::int32_t>(id);
  if ((id != "eos" && !token.has_value()) || !size.has_value() || std::isnan(*size)) return std::nullopt;
  if (sign == '+' && std::isinf(*size)) return std::nullopt;
  return BiasTerm{.id = token, .bias = sign == '-' ? -*size : *size};
}

}  // namespace

Result<SessionOptions> session_options(const Arguments& arguments) {
  const Result<SpecType> spec = parse_spec_type(arguments.text_or("--spec-type", "auto"));
  if (!spec.ok()) return spec.error();
  SessionOptions options{.spec = *spec, .num_draft_tokens = std::nullopt};
  const bool drafts_with_model = *spec == SpecType::kDraft || *spec == SpecType::kAuto;
  if (arguments.has("--draft-model") && !drafts_with_model)
    warn(fmt::format("--draft-model is not used: --spec-type is {}", arguments.text_or("--spec-type", "")));
  const std::string depth = arguments.text_or("--num-draft-tokens", "auto");
  if (depth == "auto") return options;
  int value = 0;
  const auto [end, code] = std::from_chars(depth.data(), depth.data() + depth.size(), value);
  if (code != std::errc() || end != depth.data() + depth.size() || value < 0) {
    return Error{ErrorKind::kInvalidInput,
                 fmt::format("--num-draft-tokens \"{}\": expected a whole number from 0 on, or auto", depth)};
  }
  options.num_draft_tokens = value;
  if (*spec == SpecType::kNone && value > 0) warn("--num-draft-tokens is not used: --spec-type is none");
  return options;
}

Result<std::vector<BiasTerm>> parse_logit_bias(const std::vector<std::string>& arguments) {
  std::vector<BiasTerm> terms;
  for (const std::string& argument : arguments) {
    std::string_view rest = argument;
    while (true) {
      const std::string_view text = rest.substr(0, rest.find(','));
      const std::optional<BiasTerm> term = parse_term(text);
      if (!term.has_value()) {
        return Error{ErrorKind::kInvalidInput,
                     fmt::format("--logit-bias \"{}\": expected a token id (or eos), then + or - or =, then a number "
                                 "or -inf to forbid it, like 15043+1, 2-inf or 7=-0.5",
                                 text)};
      }
      terms.push_back(*term);
      if (text.size() == rest.size()) break;
      rest.remove_prefix(text.size() + 1);
    }
  }
  return terms;
}

RunOptions run_options(const Arguments& arguments, const std::vector<BiasTerm>& bias, const EngineInfo& info) {
  RunOptions options;
  if (const auto most = arguments.integer("--predict"); most.has_value() && *most >= 0)
    options.max_tokens = static_cast<int>(*most);
  SamplingChoice sampling = info.sampling;
  sampling.temperature = arguments.real("--temp").value_or(sampling.temperature);
  sampling.top_k = static_cast<int>(arguments.integer("--top-k").value_or(sampling.top_k));
  sampling.top_p = arguments.real("--top-p").value_or(sampling.top_p);
  sampling.min_p = arguments.real("--min-p").value_or(sampling.min_p);
  sampling.repeat_penalty = arguments.real("--repeat-penalty").value_or(sampling.repeat_penalty);
  sampling.repeat_last_n = static_cast<int>(arguments.integer("--repeat-last-n").value_or(sampling.repeat_last_n));
  sampling.presence_penalty = arguments.real("--presence-penalty").value_or(sampling.presence_penalty);
  sampling.frequency_penalty = arguments.real("--frequency-penalty").value_or(sampling.frequency_penalty);
  options.sampling = sampling;
  options.seed = arguments.unsigned_integer("--seed");
  for (const BiasTerm& term : bias) {
    if (term.id.has_value()) {
      options.logit_bias.push_back({.id = *term.id, .bias = term.bias});
      continue;
    }
    for (const std::int32_t id : info.stop_ids) options.logit_bias.push_back({.id = id, .bias = term.bias});
  }
  options.ignore_eos = arguments.flag("--ignore-eos");
  options.stop = arguments.list("--reverse-prompt");
  if (const auto count = arguments.integer("--logprobs")) options.logprobs = static_cast<int>(*count);
  return options;
}

}  // namespace latte::cli
