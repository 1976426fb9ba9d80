#pragma once

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "calibrate/device_probes.h"
#include "latte/error.h"
#include "plan/choose_form.h"
#include "plan/cost_profile.h"
#include "plan/geometry.h"
#include "weights/model_weights.h"

namespace latte {

/// Weights of kv_b_proj alone: those of a model of one small layer of the geometry. Errors: no memory.
Result<ModelWeights> expansion_weights(const MlaGeometry& geometry, DType dtype, std::uint64_t seed);

/// Times of both forms of one prompt step, in microseconds of a layer with all heads.
struct FormTimes {
  double absorbed_us = 0;
  double materialised_us = 0;
};

/// Heads on which each form is timed.
struct FormSlices {
  int absorbed = 0;
  int materialised = 0;
};

/// Runs whole attention calls of prompt steps, on a slice of the heads where all of them would take long: the absorbed
/// form packs L x heads rows and the materialised one has a lane per head, so a slice of enough rows costs its share.
class FormTimer {
 public:
  FormTimer(Backend& backend, const MlaGeometry& geometry, ProbeTypes types);
  ~FormTimer();

  /// Slices of a step of about `macs` multiply-adds a form, as far as they can be cut.
  FormSlices slices(int rows, int cached, double macs) const;
  /// Seconds that one turn of both forms is expected to take by a profile.
  double expected_seconds(int rows, int cached, FormSlices heads, const CostProfile& profile) const;
  /// The least of several turns of both forms that together take about `seconds`, at least one turn. Errors: no memory,
  /// a device failure.
  Result<FormTimes> time(int rows, int cached, FormSlices heads, double seconds);

 private:
  struct Memory;

  Result<double> turn(MlaPath form, int rows, int cached, int heads);

  Backend& backend_;
  MlaGeometry geometry_;
  ProbeTypes types_;
  std::unique_ptr<Memory> memory_;
};

}  // namespace latte
