#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// The normalizer of a tokenizer.json: nothing, NFC, or a Sequence of these.
class Normalizer {
 public:
  Normalizer() = default;

  /// Reads the `normalizer` entry (null for none). Errors: a type latte does not know, by name.
  static Result<Normalizer> parse(const nlohmann::json& entry, std::string_view file);

  /// True when `apply` may change a text.
  bool changes_text() const { return nfc_; }

  /// The normalised form of a valid UTF-8 text.
  Result<std::string> apply(std::string_view text) const;

 private:
  bool nfc_ = false;
};

}  // namespace latte
