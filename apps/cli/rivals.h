#pragma once

#include <array>
#include <string_view>

namespace latte::cli {

/// Options that answer one question: the command line's answer outranks any of the environment's.
inline constexpr std::array<std::array<std::string_view, 3>, 4> kRivals = {{{"--prompt", "--file", "--ids"},
                                                                            {"--model", "--config"},
                                                                            {"--cache-type", "--kv-bits"},
                                                                            {"--progress", "--no-progress"}}};

}  // namespace latte::cli
