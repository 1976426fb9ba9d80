#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latte::cli {

/// A line for each variable LATTE_... of an environment ("NAME=value") that nothing here reads, with the nearest one
/// that is read. An option of another command is no stranger.
std::vector<std::string> unknown_variables(std::span<const std::string_view> environment);

/// Warns of those of this process.
void warn_of_unknown_variables();

}  // namespace latte::cli
