#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "latte/options.h"
#include "latte/report.h"

namespace latte {

/// What is measured. Exactly one of engine.model and config_file is set; a config file stands for a model that is not
/// there, and its dtype for the weights'.
struct CrossoverRequest {
  EngineOptions engine;     ///< model, device, isa, threads, compute and cache count; the rest is not used
  std::string config_file;  ///< a config.json
  double seconds = 60;      ///< what timing the grid may take, about; 0: no grid
};

/// One prompt step: both forms, what chooses which, and what that costs. Times are of one layer.
struct CrossoverCell {
  int rows = 0;            ///< L, new rows
  int cached = 0;          ///< T, the new ones included
  bool measured = false;   ///< false: the grid's time was up, and the times are the profile's expectation
  double absorbed_us = 0;  ///< microseconds, scaled up from a slice of the heads where a whole call is long
  double materialised_us = 0;
  std::string formula;        ///< form that the formula chooses
  std::string profile;        ///< form that the profile chooses
  std::string better;         ///< the faster form
  double formula_regret = 1;  ///< time of the formula's form over the better one's
  double profile_regret = 1;
};

/// Regret over the measured cells.
struct RegretSummary {
  int cells = 0;
  double within_5_percent = 0;  ///< share of the cells, 0 to 1
  double within_10_percent = 0;
  double worst = 1;
};

struct CrossoverReport {
  std::string model;  ///< folder or configuration
  std::string device, isa, processor;
  int threads = 0;
  int heads = 0, r = 0, p = 0, n = 0, v = 0;
  std::string cache, weights;            ///< types: "BF16"
  double profile_seconds = 0;            ///< what measuring the profile took
  std::string profile_file;              ///< where it is stored
  std::vector<CrossoverRow> crossover;   ///< by the formula, for T = 256, 512, ... 32K
  std::vector<CrossoverRow> calibrated;  ///< by the profile; nothing in a row: every L up to T is absorbed
  std::vector<CrossoverCell> cells;      ///< L = 1 to 1024 by T = 256, 512, ... 32K as far as L <= T
  RegretSummary formula_regret, profile_regret;
};

/// Told what is being done.
using TuneProgress = std::function<void(std::string_view stage)>;

/// Measures a profile anew, stores it where engines look for it, and times both forms over a grid to show what the
/// choice by formula and by profile costs. Errors: a model without latent attention, the reference device, what cannot
/// be opened, a cache directory that cannot be written.
Result<CrossoverReport> tune_crossover(const CrossoverRequest& request, const TuneProgress& progress = {});

}  // namespace latte
