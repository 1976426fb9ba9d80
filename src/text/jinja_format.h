#pragma once

#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

namespace latte::jinja {

/// Python's printf-style formatting, `text % values`: conversions s d i u x X o f F e E g G %, with flags, width and
/// precision. Refuses others, names in brackets, a value of the wrong type, and a number of values that does not fit.
Value format_percent(Runtime& runtime, std::string_view text, const std::vector<Value>& values);

}  // namespace latte::jinja
