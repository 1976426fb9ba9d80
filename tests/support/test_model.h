#pragma once

#include <optional>
#include <string>

namespace latte::test {

/// Folder of an embedded model ("latte-tiny"): where LATTE_MODELS points, the repository's models/, or
/// LATTE_TEST_DATA's; nothing when it is in none of them.
std::optional<std::string> model_folder(const std::string& name);

/// Folder of a tiny model of random weights with its goldens ("qwen3"): the committed one, or LATTE_TEST_DATA's
/// models/families; nothing when it is in neither.
std::optional<std::string> family_folder(const std::string& name);

}  // namespace latte::test
