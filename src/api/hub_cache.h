#pragma once

#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// True for a name of the Hugging Face hub: "org/name".
bool is_hub_name(std::string_view model);

/// The folder of a hub model in the local Hugging Face cache: $HF_HUB_CACHE, $HF_HOME/hub, or huggingface/hub under
/// $XDG_CACHE_HOME or ~/.cache. The revision is the one that refs/main names. Nothing is fetched. Errors: kNotFound
/// with the place looked at and the command that fetches the model.
Result<std::string> find_in_hub_cache(std::string_view model);

}  // namespace latte
