#pragma once

#include <string>

#include "text/jinja_runtime.h"

namespace latte::jinja {

/// Python's str(): what {{ value }} prints. An undefined value is empty.
std::string to_text(Runtime& runtime, const Value& value);

/// How json.dumps writes.
struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool indented = false;
  std::string indent;  ///< one level, when indented
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// Python's json.dumps(). Refuses what JSON cannot hold.
std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

/// Python's repr() of a float: the shortest digits that read back the same.
std::string float_text(double number);

}  // namespace latte::jinja
