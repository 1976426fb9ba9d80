#include "decode/run_settings.h"

#include <random>

#include "base/fail.h"

namespace latte {
namespace {

constexpr int kMostLogprobs = 20;

std::uint64_t random_seed() {
  std::random_device device;
  // 53 bits, so that programs which read numbers as doubles can hand the seed back.
  return ((std::uint64_t{device()} << 32) | device()) >> 11;
}

Status check_counts(const RunOptions& options) {
  if (options.max_tokens.has_value() && *options.max_tokens < 0) {
    return fail(ErrorKind::kInvalidInput, "[generate] at most {} tokens, expected 0 or more", *options.max_tokens);
  }
  if (options.logprobs.has_value() && (*options.logprobs < 0 || *options.logprobs > kMostLogprobs)) {
    return fail(ErrorKind::kInvalidInput, "[generate] logprobs {}: expected 0 to {} tokens beside each",
                *options.logprobs, kMostLogprobs);
  }
  return {};
}

/// The model's own, and those that stop texts name: special tokens are not part of the text.
std::vector<TokenId> stop_ids(const OpenModel& model, const RunOptions& options) {
  std::vector<TokenId> ids;
  if (!options.ignore_eos) ids.assign(model.info.stop_ids.begin(), model.info.stop_ids.end());
  const Tokenizer* const tokenizer = model.tokenizer();
  if (tokenizer == nullptr) return ids;
  for (const std::string& stop : options.stop) {
    const std::optional<std::int32_t> id = tokenizer->token_to_id(stop);
    if (id.has_value() && tokenizer->is_special(*id)) ids.push_back(*id);
  }
  return ids;
}

}  // namespace

Result<RunSettings> settle_run(const OpenModel& model, const RunOptions& options) {
  if (Status counts = check_counts(options); !counts.ok()) return counts.error();
  const SamplingChoice choice = options.sampling.value_or(model.info.sampling);
  RunSettings settings{.sampling = {.temperature = choice.temperature,
                                    .top_k = choice.top_k,
                                    .top_p = choice.top_p,
                                    .min_p = choice.min_p,
                                    .seed = options.seed.has_value() ? *options.seed : random_seed()},
                       .rules = {.bias = options.logit_bias,
                                 .repeat_penalty = choice.repeat_penalty,
                                 .repeat_last_n = choice.repeat_last_n,
                                 .presence_penalty = choice.presence_penalty,
                                 .frequency_penalty = choice.frequency_penalty},
                       .stop_ids = stop_ids(model, options)};
  if (Status sane = check_sampling(settings.sampling); !sane.ok()) return sane.error();
  if (Status sane = check_logit_rules(settings.rules, model.info.vocab); !sane.ok()) return sane.error();
  return settings;
}

}  // namespace latte
