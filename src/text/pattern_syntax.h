#pragma once

#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// Rewrites a regular expression of a tokenizer.json (Oniguruma syntax) into one that PCRE2 reads the same way:
/// class intersection `[A&&B]` and nested classes become look-aheads and alternatives; `\s` and `\w` are spelled out
/// where the engines' sets differ; long property names mean scripts; `\uHHHH` and `\h` get PCRE2's spelling. Errors: an
/// unfinished class or escape, nesting beyond 16 classes.
Result<std::string> to_pcre2_syntax(std::string_view pattern);

}  // namespace latte
