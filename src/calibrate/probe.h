#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "latte/error.h"
#include "plan/cost_profile.h"
#include "plan/geometry.h"

namespace latte {

/// The parts of a step's attention that are timed one by one.
enum class Part : std::uint8_t {
  kFold,          ///< absorbed: queries through W_UK, contexts through W_UV
  kAbsorbedCore,  ///< absorbed: packed rows of one call over cached rows, and the merge
  kExpansion,     ///< materialised: one chunk of cached rows to keys and values
  kOrdinaryCore,  ///< materialised: rows of every head over one expanded chunk
};

/// One measurement: a part on a slice of the heads and keys, since a whole call of a large model takes seconds.
struct Probe {
  Part part = Part::kExpansion;
  int rows = 0;   ///< L; of the expansion 0
  int heads = 0;  ///< of the slice, at most the geometry's
  int keys = 0;   ///< cached rows; of the fold 0
  friend constexpr bool operator==(const Probe&, const Probe&) = default;
};

/// Multiply-adds of a probe.
double probe_macs(const MlaGeometry& g, const Probe& probe);

/// A probe to tell a device's speed from: small, but work enough that a fast device does not wait for its own launches,
/// or slices would be cut for a slower one and lie in caches that whole steps do not fit.
Probe first_probe(const MlaGeometry& g, int threads);

/// The probes whose times make a profile, each of about `macs` multiply-adds as far as slices allow. `threads`: slices
/// divide among them.
std::vector<Probe> probe_list(const MlaGeometry& g, int threads, double macs);

/// The profile that the times say: `seconds` holds one per probe of probe_list. Costs that noise has turned into
/// nonsense (none, or below zero) become an error (kNumeric).
Result<CostProfile> fit_profile(const MlaGeometry& g, const std::vector<Probe>& probes,
                                const std::vector<double>& seconds);

/// Runs one probe and gives its seconds.
using RunProbe = std::function<Result<double>(const Probe&)>;
/// Seconds since some moment.
using Now = std::function<double()>;

/// How long measuring may take.
struct MeasureLimits {
  double seconds = 1.6;         ///< no round of probes is begun that would end later
  double probe_seconds = 5e-3;  ///< what a probe should take
  int most_rounds = 16;
};

/// Times all probes in rounds, so that a moment's disturbance meets every part alike, takes the least of each and fits.
/// Errors: those of `run` and of fit_profile.
Result<CostProfile> measure_profile(const MlaGeometry& g, int threads, const RunProbe& run, const Now& now,
                                    const MeasureLimits& limits = {});

}  // namespace latte
