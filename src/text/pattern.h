#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  bool operator==(const TextSpan&) const = default;
};

/// A compiled regular expression or plain string that finds its matches in a text. Immutable, shared between threads.
class Pattern {
 public:
  /// Compiles an expression in the syntax of tokenizer.json. Errors: what PCRE2 says and where.
  static Result<Pattern> regex(std::string_view expression);

  /// The `pattern` member of an entry of tokenizer.json: {"Regex": ...} or {"String": ...}. Errors name `key`.
  static Result<Pattern> from_json(const nlohmann::json& entry, std::string_view key, std::string_view file);

  /// A plain string; the empty string matches nothing.
  static Pattern literal(std::string_view text);

  /// Appends the matches in `text` (valid UTF-8), left to right, without overlap. An empty match right behind the match
  /// before it is not one. Errors: the expression needs more steps or memory than the bound allows (it backtracks
  /// without end).
  Status find_all(std::string_view text, std::vector<TextSpan>& matches) const;

 private:
  struct Code;

  Pattern() = default;
  Status find_regex(std::string_view text, std::vector<TextSpan>& matches) const;

  std::shared_ptr<const Code> code_;  // null for a literal
  std::string literal_;
};

}  // namespace latte
