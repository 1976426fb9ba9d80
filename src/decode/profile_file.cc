#include "decode/profile_file.h"

#include <fmt/format.h>

#include <cmath>

#include "calibrate/build_id.h"
#include "decode/processor_name.h"
#include "decode/profile_store.h"

namespace latte {
namespace {

struct NumberField {
  const char* name;
  double CostProfile::*number;
  double least = 0;
};
/// What some work takes is never nothing; what is left of a call may be.
constexpr double kLeastCost = 1e-9;
constexpr NumberField kNumbers[] = {{"absorbed_us", &CostProfile::absorbed_us},
                                    {"materialised_us", &CostProfile::materialised_us},
                                    {"expand_row_us", &CostProfile::expand_row_us, kLeastCost}};
struct ListField {
  const char* name;
  CostByRows CostProfile::*list;
};
constexpr ListField kLists[] = {{"fold_us", &CostProfile::fold_us},
                                {"absorbed_key_us", &CostProfile::absorbed_key_us},
                                {"ordinary_key_us", &CostProfile::ordinary_key_us}};

/// Microseconds, of `least` and more.
bool take(const Json& json, double least, double& to) {
  if (!json.is_number()) return false;
  to = json.get<double>();
  return std::isfinite(to) && to >= least && to < 1e15;
}

bool take(const Json& json, CostByRows& to) {
  if (!json.is_array() || json.size() != to.size()) return false;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!take(json[i], kLeastCost, to[i])) return false;
  return true;
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

Result<std::string> profile_path(const ProfileKey& key) { return stored_path("attention", key.text()); }

Result<CostProfile> read_profile(const std::string& path, const ProfileKey& key) {
  const Result<Json> json = read_stored(path, key.text());
  if (!json.ok()) return json.error();
  const auto at = [&](const char* name) { return json->value(name, Json()); };
  CostProfile profile;
  if (at("rows") != Json(kProfileRows)) return broken_profile(path, "rows");
  for (const NumberField& field : kNumbers)
    if (!take(at(field.name), field.least, profile.*field.number)) return broken_profile(path, field.name);
  for (const ListField& field : kLists)
    if (!take(at(field.name), profile.*field.list)) return broken_profile(path, field.name);
  return profile;
}

std::string profile_text(const ProfileKey& key, const CostProfile& profile) {
  nlohmann::ordered_json json = begin_stored(key.text());
  json["rows"] = kProfileRows;
  for (const NumberField& field : kNumbers) json[field.name] = profile.*field.number;
  for (const ListField& field : kLists) json[field.name] = profile.*field.list;
  return stored_text(json);
}

Status write_profile(const std::string& path, const ProfileKey& key, const CostProfile& profile) {
  return write_stored(path, profile_text(key, profile));
}

}  // namespace latte
