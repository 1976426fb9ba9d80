#include "decode/profile_file.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/fail.h"
#include "calibrate/build_id.h"
#include "decode/processor_name.h"
#include "io/checksum.h"
#include "io/json_file.h"
#include "io/replace_file.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 2;
constexpr std::uintmax_t kMostBytes = 1 << 16;

struct NumberField {
  const char* name;
  double CostProfile::*number;
};
constexpr NumberField kNumbers[] = {{"absorbed_us", &CostProfile::absorbed_us},
                                    {"materialised_us", &CostProfile::materialised_us},
                                    {"expand_row_us", &CostProfile::expand_row_us}};
struct ListField {
  const char* name;
  CostByRows CostProfile::*list;
};
constexpr ListField kLists[] = {{"fold_us", &CostProfile::fold_us},
                                {"absorbed_key_us", &CostProfile::absorbed_key_us},
                                {"ordinary_key_us", &CostProfile::ordinary_key_us}};

Error broken(const std::string& path, const char* field) {
  return fail(ErrorKind::kInvalidInput, "{}: key \"{}\" is no cost or missing, expected a profile as latte writes it",
              path, field);
}

/// A number of microseconds, 0 included.
bool take(const Json& json, double& to) {
  if (!json.is_number()) return false;
  to = json.get<double>();
  return std::isfinite(to) && to >= 0 && to < 1e15;
}

bool take(const Json& json, CostByRows& to) {
  if (!json.is_array() || json.size() != to.size()) return false;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!take(json[i], to[i])) return false;
  return true;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string ProfileKey::text() const {
  return fmt::format(
      "{} {}, {}, {} threads; {} heads, r {}, p {}, n {}, v {}; cache {}, weights {}, products {}; build {}", device,
      processor, isa, threads, geometry.heads, geometry.r, geometry.p, geometry.n, geometry.v, cache, weights, products,
      build);
}

ProfileKey profile_key(const BackendInfo& device, const MlaGeometry& geometry, ProbeTypes types) {
  return {.device = device.name,
          .processor = processor_name(),
          .isa = device.isa,
          .threads = device.threads,
          .geometry = geometry,
          .cache = std::string(dtype_name(types.cache)),
          .weights = std::string(dtype_name(types.weights)),
          .products = std::string(dtype_name(types.weights == DType::kBf16 ? device.products : device.activation)),
          .build = build_id()};
}

Result<std::string> profile_path(const ProfileKey& key) {
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
  const std::string text = key.text();
  Checksum digest;
  digest.add(std::as_bytes(std::span(text)));
  return (folder / "latte" / fmt::format("attention-{}.json", digest.digest().hex().substr(0, 16))).string();
}

Result<CostProfile> read_profile(const std::string& path, const ProfileKey& key) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (code == std::errc::no_such_file_or_directory || code == std::errc::not_a_directory)
    return fail(ErrorKind::kNotFound, "{}: no such file", path);
  if (!code && size > kMostBytes) {
    return fail(ErrorKind::kInvalidInput, "{}: {} bytes, expected a profile of at most {}", path, size, kMostBytes);
  }
  const Result<Json> json = read_json_file(path);
  if (!json.ok()) return json.error();
  if (!json->is_object()) return broken(path, "latte_profile");
  const auto at = [&](const char* name) {
    const auto found = json->find(name);
    return found == json->end() ? Json() : *found;
  };
  if (at("latte_profile") != Json(kFormat)) return broken(path, "latte_profile");
  const Json stored = at("key");
  if (!stored.is_string()) return broken(path, "key");
  if (stored.get<std::string>() != key.text()) {
    return fail(ErrorKind::kInvalidInput, "{}: a profile of {}, expected one of {}", path,
                quote_name(stored.get<std::string>()), key.text());
  }
  CostProfile profile;
  for (const NumberField& field : kNumbers)
    if (!take(at(field.name), profile.*field.number)) return broken(path, field.name);
  for (const ListField& field : kLists)
    if (!take(at(field.name), profile.*field.list)) return broken(path, field.name);
  return profile;
}

std::string profile_text(const ProfileKey& key, const CostProfile& profile) {
  nlohmann::ordered_json json = {{"latte_profile", kFormat}, {"key", key.text()}, {"rows", kProfileRows}};
  for (const NumberField& field : kNumbers) json[field.name] = profile.*field.number;
  for (const ListField& field : kLists) json[field.name] = profile.*field.list;
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Status can_write_profile(const std::string& path) {
  std::error_code code;
  fs::create_directories(fs::path(path).parent_path(), code);
  if (code) {
    return fail(ErrorKind::kIo, "{}: cannot be made: {}, expected a folder for measured costs",
                fs::path(path).parent_path().string(), code.message());
  }
  const Result<FileReplacement> file = FileReplacement::begin(path);
  return file.ok() ? Status() : Status(file.error());
}

Status write_profile(const std::string& path, const ProfileKey& key, const CostProfile& profile) {
  if (Status possible = can_write_profile(path); !possible.ok()) return possible;
  Result<FileReplacement> file = FileReplacement::begin(path);
  if (!file.ok()) return file.error();
  const std::string text = profile_text(key, profile);
  if (Status written = file->write(std::as_bytes(std::span(text))); !written.ok()) return written;
  return file->commit();
}

}  // namespace latte
