#pragma once

#include <limits>

namespace latte::test {

/// The bias of a token that must not be chosen.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace latte::test
