#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

using Json = nlohmann::json;

inline constexpr int kJsonMaxDepth = 64;

/// Parses one JSON document. `source` names it in errors ("models/x/config.json").
/// A syntax error carries its byte offset; nesting deeper than `max_depth` and a key given twice in one object are
/// errors.
Result<Json> parse_json(std::string_view text, std::string_view source, int max_depth = kJsonMaxDepth);

/// Reads and parses a file; errors name its path.
Result<Json> read_json_file(const std::string& path, int max_depth = kJsonMaxDepth);

/// `text` in double quotes, control characters and broken UTF-8 escaped, cut at 200 bytes: safe in a one-line message.
std::string quote_name(std::string_view text);

/// A JSON value as it stands in the file, cut at 60 characters.
std::string cut_json(const Json& value);

/// A JSON value as it stands in the file, short enough for a message: `"yarn"`, `null`, `{...}`.
std::string brief_json(const Json& value);

}  // namespace latte
