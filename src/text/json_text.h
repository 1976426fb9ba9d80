#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// Deepest nesting of lists and objects that is read. Real files stay below 20; the bound keeps every later walk over
/// the document shallow, whatever the file holds.
inline constexpr int kMaxJsonDepth = 128;

/// Deepest nesting of an entry of type Sequence (normalizers, pre-tokenizers, post-processors).
inline constexpr int kMostSequences = 8;

/// The whole of a text file. Errors name the path: kNotFound when it does not exist, kIo when it cannot be
/// read, kInvalidInput when it is a directory, a pipe or a device.
Result<std::string> read_text_file(const std::string& path);

/// Refuses NUL bytes and nesting beyond `max_depth`, the two things the JSON parser itself does not guard. `file` names
/// the source in errors.
Status check_json_text(std::string_view text, std::string_view file, int max_depth = kMaxJsonDepth);

/// Parses a JSON text after `check_json_text`. Errors: one line with the file and the byte where reading stopped.
Result<nlohmann::json> parse_json_text(std::string_view text, std::string_view file);

/// The same with the order of keys kept: messages, tools and template arguments.
Result<nlohmann::ordered_json> parse_ordered_json_text(std::string_view text, std::string_view file);

/// The `type` of an entry such as a normalizer. Errors: the entry is no object or its type no string.
Result<std::string> json_type_name(const nlohmann::json& entry, std::string_view key, std::string_view file);

/// A boolean member; `fallback` when absent or null. Errors: another type.
Result<bool> json_bool(const nlohmann::json& entry, const char* member, bool fallback, std::string_view key,
                       std::string_view file);

/// A string from a file, quoted, escaped to one line and cut to a length that fits an error message.
std::string quote_for_error(std::string_view text);

}  // namespace latte
