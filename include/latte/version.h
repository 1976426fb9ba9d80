#pragma once

#include <string_view>

namespace latte {

/// Version of the library and the program.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace latte
