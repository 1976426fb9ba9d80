#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "latte/error.h"

namespace latte {

/// `text` with a space for every control character: a message may quote a file, and stays one line.
inline std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text;
}

/// Builds an Error whose message says, in one line, what arrived, what was expected and what to do.
template <class... Args>
[[nodiscard]] Error fail(ErrorKind kind, fmt::format_string<Args...> message, Args&&... args) {
  return Error{kind, one_line(fmt::format(message, std::forward<Args>(args)...))};
}

}  // namespace latte
