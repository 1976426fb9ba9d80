#pragma once

#include <cstdio>
#include <cstdlib>

namespace latte {

/// A claim about our own code. When it is false the program is wrong, not the world: say which sentence broke and stop.
constexpr void expects(bool condition, const char* sentence) {
  if (condition) return;
  std::fprintf(stderr, "latte: broken contract: %s\n", sentence);
  std::abort();
}

}  // namespace latte
