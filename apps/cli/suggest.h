#pragma once

#include <span>
#include <string>
#include <string_view>

namespace latte::cli {

/// The candidate nearest to `typed`; empty when none is near.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> candidates);

/// ` (did you mean "--predict"?)` for the candidate nearest to `typed`, or nothing when none is near.
std::string suggestion(std::string_view typed, std::span<const std::string_view> candidates);

}  // namespace latte::cli
