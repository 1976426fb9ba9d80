#pragma once

#include <optional>
#include <string>

namespace latte::testing {

/// Folder of an embedded model ("latte-tiny"): where LATTE_MODELS points, the repository's models/, or
/// LATTE_TEST_DATA's; nothing when it is in none of them.
std::optional<std::string> model_folder(const std::string& name);

}  // namespace latte::testing
