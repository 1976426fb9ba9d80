#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace latte {

/// The value of "key<white space>: value" in a file of such lines; empty when there is none.
std::string labelled_value(const std::filesystem::path& path, std::string_view key);

/// The name of this machine's processor, as Linux tells it; empty elsewhere.
std::string processor_name();

}  // namespace latte
