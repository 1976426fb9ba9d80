#pragma once

#include <span>
#include <string>
#include <string_view>

#include "latte/error.h"
#include "model/families/family.h"

namespace latte {

/// The family whose mathematics a model follows, by model_type, else by architectures[0]. kUnsupported names the
/// nearest known word when neither is known.
Result<const Family*> resolve_family(std::string_view model_type, std::span<const std::string> architectures,
                                     std::string_view source);

/// True when a family has this word.
bool names_a_family(std::string_view word);

/// kUnsupported, with the reason and the nearest family, when the names mean a family that latte knows and does not
/// run.
Status refuse_known(std::string_view model_type, std::span<const std::string> architectures, std::string_view source);

/// Fewest single-character insertions, deletions and replacements that turn `a` into `b`.
int edit_distance(std::string_view a, std::string_view b);

}  // namespace latte
