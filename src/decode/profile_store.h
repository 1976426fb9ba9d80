#pragma once

#include <string>
#include <string_view>

#include "io/json_file.h"
#include "latte/error.h"

namespace latte {

/// Where what was measured on this machine is kept, one file per kind and key: latte/KIND-DIGEST.json in
/// XDG_CACHE_HOME, else in ~/.cache. Errors: kNotFound when the environment names neither.
Result<std::string> stored_path(std::string_view kind, std::string_view key);

/// The JSON object of such a file, whose "latte_profile" and "key" are checked. Errors: kNotFound when there is no
/// file; kInvalidInput when it is none of latte's, or one of another key.
Result<Json> read_stored(const std::string& path, std::string_view key);

/// The error for a file whose `field` is missing or none of latte's.
Error broken_profile(const std::string& path, std::string_view field);

/// The start of such a file, to which its own fields are added; `stored_text` makes its bytes.
nlohmann::ordered_json begin_stored(std::string_view key);
std::string stored_text(const nlohmann::ordered_json& json);

/// Writes a file that appears whole or not at all; makes its folder. Errors: what the system refuses.
Status write_stored(const std::string& path, std::string_view text);

/// Whether write_stored could write there now: makes the folder, leaves no file behind. Errors as there.
Status can_write_stored(const std::string& path);

}  // namespace latte
