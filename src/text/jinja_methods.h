#pragma once

#include <string_view>

#include "text/jinja_runtime.h"

namespace latte::jinja {

/// True when Python has a method of this name on the value's type, one that latte knows or one that would change it.
bool has_method(const Value& self, std::string_view name);

/// Calls a method of a string, list, dict or loop. Refuses methods that would change the value, as Jinja's sandbox
/// does, and wrong arguments.
Value call_method(Runtime& runtime, const Value& self, std::string_view name, const Arguments& arguments);

/// Text without the characters of `characters` (white space when null) at the chosen ends.
std::string_view strip(std::string_view text, const std::string* characters, bool left, bool right);

/// Text with the first `limit` occurrences of a part replaced; all when `limit` is negative.
std::string replace(Runtime& runtime, std::string_view text, std::string_view part, std::string_view with,
                    std::int64_t limit);

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
/// First letter upper, the others lower.
std::string capitalize(std::string_view text);

}  // namespace latte::jinja
