#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "text/pattern.h"

namespace latte {

/// The normalizer of a tokenizer.json: NFC, Prepend, Replace, a Sequence of these, or nothing.
class Normalizer {
 public:
  Normalizer() = default;

  /// Reads the `normalizer` entry (null for none). Errors: a type latte does not know, by name; a bad pattern.
  static Result<Normalizer> parse(const nlohmann::json& entry, std::string_view file);

  /// Puts `prefix` before a text that is not empty; `first_only`: only where nothing stands before it.
  static Normalizer prepending(std::string_view prefix, bool first_only);

  /// True when `apply` may change a text.
  bool changes_text() const { return !steps_.empty(); }

  /// The normalised form of a valid UTF-8 text; `starts_text` says that nothing stands before it.
  Result<std::string> apply(std::string_view text, bool starts_text = true) const;

 private:
  struct Step {
    enum class Kind { kNfc, kPrepend, kReplace };
    Kind kind = Kind::kNfc;
    bool first_only = false;       // of kPrepend
    std::vector<Pattern> pattern;  // of kReplace: one
    std::string content;           // what is put in
  };

  Status add(const nlohmann::json& entry, const std::string& key, std::string_view file, int depth);
  Status add_replace(const nlohmann::json& entry, const std::string& key, std::string_view file);

  std::vector<Step> steps_;
};

}  // namespace latte
