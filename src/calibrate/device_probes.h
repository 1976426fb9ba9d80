#pragma once

#include <memory>

#include "backend/backend.h"
#include "calibrate/probe.h"

namespace latte {

/// What rows are kept as, and what the expansion's weights are.
struct ProbeTypes {
  DType cache = DType::kBf16;
  DType weights = DType::kBf16;
};

/// The parts of both forms on an open device, over rows and weights made for the purpose. The calls are those of
/// src/attention, one by one. The backend must outlive it; it is busy while a probe runs.
class DeviceProbes {
 public:
  DeviceProbes(Backend& backend, const MlaGeometry& geometry, ProbeTypes types);
  ~DeviceProbes();

  /// Seconds of one probe. Memory grows with the largest so far. Errors: no memory, a device failure.
  Result<double> run(const Probe& probe);

 private:
  struct Memory;

  Status make_room(const Probe& probe);
  void fold(const Probe& probe);
  void absorbed_core(const Probe& probe);
  void expansion(const Probe& probe);
  void ordinary_core(const Probe& probe);

  Backend& backend_;
  MlaGeometry geometry_;
  ProbeTypes types_;
  std::unique_ptr<Memory> memory_;
};

/// measure_profile on a device, by the steady clock: at most two seconds. Errors: no memory, a device failure.
Result<CostProfile> calibrate(Backend& backend, const MlaGeometry& geometry, ProbeTypes types,
                              const MeasureLimits& limits = {});

}  // namespace latte
