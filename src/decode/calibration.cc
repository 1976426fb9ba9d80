#include "decode/calibration.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "decode/cache_type.h"
#include "decode/profile_store.h"
#include "io/checkpoint.h"

namespace latte {
namespace {

constexpr std::int64_t kRowsThatMatter = 4096;
constexpr double kMacsThatMatter = 0x1p36;

/// What kv_b_proj is stored as.
Result<DType> stored_type(const ModelConfig& config, const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::path folder(directory);
  const bool has_weights =
      !directory.empty() && (std::filesystem::exists(folder / "model.safetensors", ignored) ||
                             std::filesystem::exists(folder / "model.safetensors.index.json", ignored));
  if (!has_weights) return config.dtype;
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint.ok()) return checkpoint.error();
  for (const TensorView& tensor : checkpoint->tensors())
    if (tensor.name.ends_with("kv_b_proj.weight")) return tensor.dtype;
  return config.dtype;
}

}  // namespace

Result<MeasuredTypes> measured_types(const EngineOptions& options, const ModelConfig& config,
                                     const std::string& directory) {
  const Result<DType> stored = stored_type(config, directory);
  if (!stored.ok()) return stored.error();
  const bool wide = *stored == DType::kF32 || *stored == DType::kF64;
  MeasuredTypes types;
  types.compute = options.compute == ComputeType::kAuto  ? (wide ? DType::kF32 : DType::kBf16)
                  : options.compute == ComputeType::kF32 ? DType::kF32
                                                         : DType::kBf16;
  types.probe.weights = expansion_type(*stored);
  const Result<DType> cache = cached_type(options.cache, types.compute, "[tune]");
  if (!cache.ok()) return cache.error();
  types.probe.cache = *cache;
  return types;
}

bool calibration_can_matter(const MlaGeometry& g, int layers, int context) {
  const double macs = static_cast<double>(g.heads) * g.r * g.expanded_width() * layers *
                      static_cast<double>(std::min<std::int64_t>(kRowsThatMatter, context));
  return macs >= kMacsThatMatter;
}

bool profile_may_decide(const EngineOptions& options, const ModelConfig& config, const BackendInfo& device,
                        DType cache) {
  return is_measured(cache) && options.calibration != Calibration::kOff && config.attention == AttentionKind::kMla &&
         options.path == PathChoice::kAuto && options.numerics == Numerics::kFast && device.name != "reference";
}

FoundProfile find_profile(Backend& backend, const MlaGeometry& geometry, ProbeTypes types, bool may_measure,
                          const LoadProgress& progress, const MeasureLimits& limits) {
  FoundProfile found;
  const ProfileKey key = profile_key(backend.info(), geometry, types);
  const Result<std::string> path = profile_path(key);
  if (!path.ok()) {
    if (may_measure)
      found.warnings.push_back(fmt::format("{}; the formula chooses the form of prompt steps", path.error().message));
    return found;
  }
  found.file = *path;
  Result<CostProfile> stored = read_profile(*path, key);
  if (stored.ok()) {
    found.profile = *stored;
    found.source = "stored";
    return found;
  }
  if (stored.error().kind != ErrorKind::kNotFound) {
    found.warnings.push_back(
        fmt::format("{}; {}", stored.error().message,
                    may_measure ? "it is measured again" : "the formula chooses the form of prompt steps"));
  }
  if (!may_measure) return found;
  const auto formula = [&](const Error& error) {
    found.warnings.push_back(fmt::format(
        "{}; costs are not measured and the formula chooses the form of prompt steps (--no-calibration asks "
        "for that)",
        error.message));
    return found;
  };
  if (Status possible = can_write_stored(*path); !possible.ok()) return formula(possible.error());
  if (progress) progress("measuring both forms of the attention, once for this machine");
  const Result<CostProfile> measured = calibrate(backend, geometry, types, limits);
  if (!measured.ok()) return formula(measured.error());
  // Another process may have been faster: all runs choose by one profile.
  if (stored = read_profile(*path, key); stored.ok()) {
    found.profile = *stored;
    found.source = "stored";
    return found;
  }
  if (Status written = write_profile(*path, key, *measured); !written.ok()) return formula(written.error());
  found.profile = *measured;
  found.source = "measured";
  return found;
}

}  // namespace latte
