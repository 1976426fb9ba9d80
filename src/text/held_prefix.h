#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace latte {

/// A prompt whose beginning is ids that somebody holds already, such as a cache.
struct HeldPrefix {
  std::vector<std::int32_t> ids;  ///< the first `kept` held ones, then those of the rest of the prompt
  int kept = 0;
  std::string reason;  ///< why not all held ids were kept; empty when they were
};

/// Ids of `prompt`, a rendered chat template (stand-ins as in EncodeOptions, may be null), that begin with as many of
/// `held` as spell the same text. A text has many spellings: what a model wrote is seldom how the tokenizer would cut
/// it, and ids that were fed once are never cut anew while their text stands. Where the texts part, the cut falls on
/// the last border of tokens that both spellings have. Errors: those of Tokenizer::encode.
Result<HeldPrefix> continue_held(const Tokenizer& tokenizer, std::string_view prompt, const StandIns* stand_ins,
                                 std::span<const std::int32_t> held);

}  // namespace latte
