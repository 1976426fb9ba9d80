#pragma once

#include <string>

#include "backend/backend.h"
#include "calibrate/device_probes.h"
#include "latte/error.h"
#include "plan/cost_profile.h"
#include "plan/geometry.h"

namespace latte {

/// Everything that a profile's times depend on.
struct ProfileKey {
  std::string device;     ///< "cpu"
  std::string processor;  ///< its name: home directories are shared between machines
  std::string isa;
  int threads = 1;
  MlaGeometry geometry;
  std::string cache;  ///< types of cached rows, of kv_b_proj and of what products round activations to: "BF16"
  std::string weights;
  std::string products;
  std::string build;  ///< build_id()

  /// All of it in one line.
  std::string text() const;
};

ProfileKey profile_key(const BackendInfo& device, const MlaGeometry& geometry, ProbeTypes types);

/// Where the profile of a key is stored. Errors as stored_path.
Result<std::string> profile_path(const ProfileKey& key);

/// Errors: kNotFound when there is no file; kInvalidInput when it is no profile, or one of another key.
Result<CostProfile> read_profile(const std::string& path, const ProfileKey& key);

/// A profile as the bytes of its file: one JSON object.
std::string profile_text(const ProfileKey& key, const CostProfile& profile);

/// Writes a file that appears whole or not at all; makes its folder. Errors: what the system refuses.
Status write_profile(const std::string& path, const ProfileKey& key, const CostProfile& profile);

}  // namespace latte
