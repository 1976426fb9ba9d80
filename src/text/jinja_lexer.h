#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"

namespace latte::jinja {

enum class TokenKind {
  kText,           ///< template text outside of tags, white space control applied
  kBlockBegin,     ///< {%
  kBlockEnd,       ///< %}
  kVariableBegin,  ///< {{
  kVariableEnd,    ///< }}
  kName,
  kString,   ///< escapes resolved
  kInteger,  ///< digits in `text`, value in `integer`
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  std::int64_t integer = 0;
  double number = 0;
  int line = 1;

  bool is_operator(std::string_view symbol) const { return kind == TokenKind::kOperator && text == symbol; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

/// Cuts a template (valid UTF-8) into tokens as Jinja does with trim_blocks and lstrip_blocks on: line ends become \n,
/// one at the very end is dropped, comments and raw blocks are resolved. The list ends in kEnd. Errors name the line.
Result<std::vector<Token>> tokenize(std::string_view source);

}  // namespace latte::jinja
