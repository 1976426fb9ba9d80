#pragma once

#include <string_view>

#include "latte/error.h"
#include "text/jinja_ast.h"

namespace latte::jinja {

/// Largest template read, in bytes; the longest in use has 50 KB.
inline constexpr std::size_t kMaxTemplateBytes = 1 << 22;

/// Parses a template (valid UTF-8). Errors: "line N: ..." with what stood there and what was expected; a statement that
/// templates of chat models do not use (include, import, extends, block) is refused by name.
Result<Ast> parse_template(std::string_view source);

}  // namespace latte::jinja
