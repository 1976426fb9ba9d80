#pragma once

#include <fmt/format.h>

#include <utility>

#include "latte/error.h"

namespace latte {

/// Builds an Error whose message says what arrived, what was expected and what to do.
template <class... Args>
[[nodiscard]] Error fail(ErrorKind kind, fmt::format_string<Args...> message, Args&&... args) {
  return Error{kind, fmt::format(message, std::forward<Args>(args)...)};
}

}  // namespace latte
