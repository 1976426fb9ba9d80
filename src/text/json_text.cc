#include "text/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "base/fail.h"
#include "io/file_map.h"
#include "text/type_words.h"

namespace latte {
namespace {

template <class Json>
Result<Json> parse_as(std::string_view text, std::string_view file) {
  const Status checked = check_json_text(text, file);
  if (!checked.ok()) return checked.error();
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::parse_error& error) {
    return fail(ErrorKind::kInvalidInput, "{}: broken JSON at byte {} of {}; expected one whole JSON value", file,
                std::min(error.byte, text.size()), text.size());
  } catch (const nlohmann::json::exception&) {
    return fail(ErrorKind::kInvalidInput, "{}: a number is out of range, expected what fits 64 bits", file);
  }
}

}  // namespace

Result<std::string> read_text_file(const std::string& path) {
  const Result<FileMap> file = FileMap::open(path);
  if (!file.ok()) return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status check_json_text(std::string_view text, std::string_view file, int max_depth) {
  // The parser takes a NUL byte for the end of the text and would ignore what follows it.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return fail(ErrorKind::kInvalidInput, "{}: NUL byte at byte {}, expected JSON text; fetch the file again", file,
                nul);
  }
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (in_string) {
      if (byte == '\\') {
        ++at;
      } else if (byte == '"') {
        in_string = false;
      }
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '[' || byte == '{') {
      if (++depth > max_depth) {
        return fail(ErrorKind::kInvalidInput, "{}: JSON nested deeper than {} levels at byte {}, which no real file is",
                    file, max_depth, at);
      }
    } else if (byte == ']' || byte == '}') {
      --depth;
    }
  }
  return {};
}

Result<nlohmann::json> parse_json_text(std::string_view text, std::string_view file) {
  return parse_as<nlohmann::json>(text, file);
}

Result<nlohmann::ordered_json> parse_ordered_json_text(std::string_view text, std::string_view file) {
  return parse_as<nlohmann::ordered_json>(text, file);
}

Result<std::string> json_type_name(const nlohmann::json& entry, std::string_view key, std::string_view file) {
  if (entry.is_object()) {
    const auto type = entry.find("type");
    if (type != entry.end() && type->is_string()) return type->get<std::string>();
  }
  return fail(ErrorKind::kInvalidInput, "{}: {} has no \"type\" string, expected an object that names its type", file,
              key);
}

Result<bool> json_bool(const nlohmann::json& entry, const char* member, bool fallback, std::string_view key,
                       std::string_view file) {
  const auto found = entry.find(member);
  if (found == entry.end() || found->is_null()) return fallback;
  if (found->is_boolean()) return found->get<bool>();
  return fail(ErrorKind::kInvalidInput, "{}: {}.{} is {}, expected true or false", file, key, member,
              with_article(found->type_name()));
}

std::string quote_for_error(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string shown(text.substr(0, kShown));
  shown = nlohmann::json(shown).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kShown) shown.insert(shown.size() - 1, "...");
  return shown;
}

}  // namespace latte
