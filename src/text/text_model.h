#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte {

/// What turns a text that holds no added token into ids: the one part in which the kinds of tokenizers differ. Never
/// gives the id of an added token. Immutable, shared between threads.
class TextModel {
 public:
  virtual ~TextModel() = default;

  /// Appends the ids of a valid, normalised UTF-8 text. `starts_text` says that nothing stands before it, which a
  /// prefix space may depend on. Errors: a regular expression that backtracks without end.
  virtual Status encode(std::string_view text, bool starts_text, std::vector<std::int32_t>& ids) const = 0;
};

}  // namespace latte
