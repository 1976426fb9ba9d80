#pragma once

#include <string>

namespace latte::test {

/// The error's message of a Result or a Status, or that there is none.
template <class Outcome>
std::string refusal(const Outcome& outcome) {
  return outcome.ok() ? "(accepted)" : outcome.error().message;
}

}  // namespace latte::test
