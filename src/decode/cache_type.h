#pragma once

#include <cstdint>
#include <string_view>

#include "latte/error.h"
#include "latte/options.h"
#include "model/config.h"
#include "plan/choose_form.h"

namespace latte {

/// What rows are cached as when `asked` is said, `otherwise` at auto. Errors, with `who` ("[open]") first: a type that
/// no device caches rows as, by name.
Result<DType> cached_type(CacheType asked, DType otherwise, std::string_view who);

/// "q8", "bf16": what options and reports call a type of rows or of computation.
std::string_view type_word(DType dtype);

/// Bytes of one token's keys and values of every head in one layer: what a cache without a latent would hold.
WideInt expanded_row_bytes(const ModelConfig& config, DType dtype);

}  // namespace latte
