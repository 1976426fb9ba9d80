#pragma once

#include <string_view>

#include "text/jinja_runtime.h"

namespace latte::jinja {

/// subject | name(arguments). Refuses an unknown filter by name.
Value apply_filter(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments);

/// subject is name(arguments). Refuses an unknown test by name.
bool apply_test(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments);

bool has_filter(std::string_view name);
bool has_test(std::string_view name);

}  // namespace latte::jinja
