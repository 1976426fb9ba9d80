#include "decode/profile_store.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/fail.h"
#include "io/checksum.h"
#include "io/replace_file.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 2;
constexpr std::uintmax_t kMostBytes = 1 << 16;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<std::string> stored_path(std::string_view kind, std::string_view key) {
  // A relative XDG_CACHE_HOME counts as none, says the XDG base directory specification.
  fs::path folder = variable("XDG_CACHE_HOME");
  if (!folder.is_absolute()) {
    const std::string home = variable("HOME");
    if (home.empty()) {
      return fail(ErrorKind::kNotFound,
                  "neither XDG_CACHE_HOME nor HOME names a folder, expected one to keep measured costs in: set one, or "
                  "pass --no-calibration");
    }
    folder = fs::path(home) / ".cache";
  }
  Checksum digest;
  digest.add(std::as_bytes(std::span(key)));
  return (folder / "latte" / fmt::format("{}-{}.json", kind, digest.digest().hex().substr(0, 16))).string();
}

Error broken_profile(const std::string& path, std::string_view field) {
  return fail(ErrorKind::kInvalidInput, "{}: key \"{}\" is no cost or missing, expected a profile as latte writes it",
              path, field);
}

Result<Json> read_stored(const std::string& path, std::string_view key) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory)
    return fail(ErrorKind::kNotFound, "{}: no such file", path);
  if (!code && size > kMostBytes) {
    return fail(ErrorKind::kInvalidInput, "{}: {} bytes, expected a profile of at most {}", path, size, kMostBytes);
  }
  Result<Json> json = read_json_file(path);
  if (!json.ok()) return json.error();
  if (!json->is_object() || json->value("latte_profile", Json()) != Json(kFormat))
    return broken_profile(path, "latte_profile");
  const Json stored = json->value("key", Json());
  if (!stored.is_string()) return broken_profile(path, "key");
  if (stored.get<std::string>() != key) {
    return fail(ErrorKind::kInvalidInput, "{}: a profile of {}, expected one of {}", path,
                quote_name(stored.get<std::string>()), key);
  }
  return json;
}

nlohmann::ordered_json begin_stored(std::string_view key) { return {{"latte_profile", kFormat}, {"key", key}}; }

std::string stored_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Status can_write_stored(const std::string& path) {
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  if (code) {
    return fail(ErrorKind::kIo, "{}: cannot be made: {}, expected a folder for measured costs",
                fs::path(path).parent_path().string(), code.message());
  }
  const Result<FileReplacement> file = FileReplacement::begin(path);
  return file.ok() ? Status() : Status(file.error());
}

Status write_stored(const std::string& path, std::string_view text) {
  if (Status possible = can_write_stored(path); !possible.ok()) return possible;
  Result<FileReplacement> file = FileReplacement::begin(path);
  if (!file.ok()) return file.error();
  if (Status written = file->write(std::as_bytes(std::span(text))); !written.ok()) return written;
  return file->commit();
}

}  // namespace latte
