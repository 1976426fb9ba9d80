#pragma once

#include <string>
#include <string_view>

#include "option_table.h"

namespace latte::cli {

/// What there is to say of a word that is no option of a command: its name here where another program has it, the
/// commands that have it, or the nearest option.
std::string unknown_option(const CommandSpec& command, std::string_view word);

}  // namespace latte::cli
