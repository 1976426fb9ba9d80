#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "decode/profile_file.h"
#include "latte/engine.h"
#include "latte/options.h"
#include "model/config.h"

namespace latte {

/// What the forms' weights are once loaded: types other than bf16 are widened.
constexpr DType expansion_type(DType stored) { return stored == DType::kBf16 ? DType::kBf16 : DType::kF32; }

/// The types that opening a model would come to, for those who measure without opening it.
struct MeasuredTypes {
  ProbeTypes probe;
  DType compute = DType::kBf16;  ///< what the device is opened with
};

/// From the tensors of `directory` where it holds any, else from the configuration. Errors: a broken checkpoint, a
/// cache type that nothing here has.
Result<MeasuredTypes> measured_types(const EngineOptions& options, const ModelConfig& config,
                                     const std::string& directory);

/// Whether a wrong form could cost a second or so: models whose layers together expand 4096 cached rows (or their
/// context) with fewer than 2^36 multiply-adds are not measured unasked.
bool calibration_can_matter(const MlaGeometry& geometry, int layers, int context);

/// Whether costs are measured on cached rows of this type: floats, not codes.
constexpr bool is_measured(DType cache) { return cache != DType::kQ8; }

/// Whether the options leave the choice of a prompt step's form to a profile: latent attention, path auto, fast
/// numerics, not the reference device (whose results depend on no file), and not Calibration::kOff.
bool profile_may_decide(const EngineOptions& options, const ModelConfig& config, const BackendInfo& device,
                        DType cache);

/// A profile, where it came from, and what went wrong on the way.
struct FoundProfile {
  std::optional<CostProfile> profile;
  std::string source = "none";  ///< "stored", "measured"
  std::string file;             ///< where it is kept; empty when nothing says where
  std::vector<std::string> warnings;
};

/// The stored profile; when there is none, or a broken or foreign one, and `may_measure`: a new one, measured on the
/// backend and stored. What cannot be stored is not measured either, since the next run would choose by other numbers:
/// the formula decides, and a warning says so.
FoundProfile find_profile(Backend& backend, const MlaGeometry& geometry, ProbeTypes types, bool may_measure,
                          const LoadProgress& progress, const MeasureLimits& limits = {});

}  // namespace latte
