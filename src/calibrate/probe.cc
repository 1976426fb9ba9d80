#include "calibrate/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/contract.h"
#include "base/fail.h"
#include "plan/split_kv.h"
#include "plan/step_plan.h"

namespace latte {
namespace {

constexpr int kMostFoldRows = 64;                   // products of more rows are as fast as these
constexpr int kMostCoreRows = 128;                  // of calls of more queries: their heads are few
constexpr int kMostOrdinaryRows = 512;              // as are lanes of more rows
constexpr int kCoreKeys = 16 * kShortestLeaf;       // more than second-level caches hold, which every group reads anew
constexpr std::int64_t kPackedRowsPerThread = 256;  // enough for whole groups of packed rows

/// Queries of one absorbed call of a prompt step.
int call_queries(const MlaGeometry& g) {
  const std::int64_t packed = std::int64_t{g.heads} * g.latent_width();
  return static_cast<int>(std::max<std::int64_t>(1, kPackedValuesPerCall / packed));
}

/// Heads of a slice that costs about `macs` where one head costs `head_macs`: a multiple of the threads, at least
/// `least`.
int slice(const MlaGeometry& g, int threads, double macs, double head_macs, int least) {
  const double wanted = std::max<double>(least, macs / head_macs);
  if (wanted >= g.heads) return g.heads;
  const int heads = static_cast<int>(wanted);
  return std::min(g.heads, (heads + threads - 1) / threads * threads);
}

Probe fold_probe(const MlaGeometry& g, int threads, double macs, int rows) {
  const double head = probe_macs(g, {Part::kFold, rows, 1, 0});
  return {Part::kFold, rows, slice(g, threads, macs, head, threads), 0};
}

Probe core_probe(const MlaGeometry& g, int threads, double macs, Part part, int rows) {
  const double head = probe_macs(g, {part, rows, 1, kCoreKeys});
  const std::int64_t least = (kPackedRowsPerThread * threads + rows - 1) / rows;
  return {part, rows, slice(g, threads, macs, head, static_cast<int>(std::min<std::int64_t>(least, g.heads))),
          kCoreKeys};
}

Probe expand_probe(const MlaGeometry& g, int threads, double macs) {
  const double head = probe_macs(g, {Part::kExpansion, 0, 1, kExpandRows});
  return {Part::kExpansion, 0, slice(g, threads, macs, head, threads), kExpandRows};
}

Probe ordinary_probe(const MlaGeometry& g, int threads, double macs, int rows) {
  const double head = probe_macs(g, {Part::kOrdinaryCore, rows, 1, kExpandRows});
  return {Part::kOrdinaryCore, rows, slice(g, threads, macs, head, threads), kExpandRows};
}

/// Probes that do next to nothing: what is left of their times is the cost of a call.
std::vector<Probe> small_probes(const MlaGeometry& g, int threads) {
  const int heads = std::min(g.heads, threads);
  return {{Part::kFold, 2, heads, 0},
          {Part::kAbsorbedCore, 2, heads, kKeyBlock},
          {Part::kExpansion, 0, heads, kKeyBlock / 4},
          {Part::kOrdinaryCore, 2, heads, kKeyBlock / 4}};
}

/// Keys that an average row of a probe sees. Expanded chunks lie before all rows.
double keys_seen(const Probe& probe) {
  return probe.part == Part::kOrdinaryCore ? probe.keys : mean_visible_rows(probe.rows, probe.keys);
}

/// Fills what was not measured by proportion to the largest row count that was.
void extend(CostByRows& costs, int measured_rows, double cost) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (kProfileRows[i] > measured_rows) costs[i] = cost * kProfileRows[i] / measured_rows;
  }
}

/// The costs of one part, collected from its probes in ascending order of rows. More rows never cost less than fewer;
/// where rows share what is read (`shares`) they never cost more a row, since they could be taken in turns. What
/// contradicts that is noise, which only ever adds. Packed rows of the absorbed form do cost more a row where their
/// results leave the caches.
class Curve {
 public:
  explicit Curve(bool shares) : shares_(shares) {}

  void add(int rows, double cost) {
    if (shares_) {
      least_of_a_row_ = std::min(least_of_a_row_, cost / rows);
      cost = least_of_a_row_ * rows;
    }
    for (std::size_t i = 0; i < costs_.size(); ++i) {
      if (kProfileRows[i] == rows) costs_[i] = cost;
    }
    last_rows_ = rows;
    last_cost_ = cost;
  }
  CostByRows finish() {
    // A call's last queries may be fewer than the next row count: what lies above is proportional to it.
    extend(costs_, last_rows_, last_cost_);
    for (std::size_t i = costs_.size() - 1; i > 0; --i) costs_[i - 1] = std::min(costs_[i - 1], costs_[i]);
    return costs_;
  }

 private:
  bool shares_;
  CostByRows costs_{};
  double least_of_a_row_ = std::numeric_limits<double>::infinity();
  int last_rows_ = 0;
  double last_cost_ = 0;
};

bool is_cost(double value) { return std::isfinite(value) && value > 0; }

}  // namespace

double probe_macs(const MlaGeometry& g, const Probe& probe) {
  const double heads = probe.heads, rows = probe.rows, keys = probe.keys;
  switch (probe.part) {
    case Part::kFold:
      return heads * rows * g.r * g.expanded_width();
    case Part::kAbsorbedCore:
      return heads * rows * keys * (g.latent_width() + g.r);
    case Part::kExpansion:
      return heads * keys * g.r * g.expanded_width();
    case Part::kOrdinaryCore:
      return heads * rows * keys * (g.key_width() + g.v);
  }
  return 0;
}

Probe first_probe(const MlaGeometry& g, int threads) {
  return {Part::kExpansion, 0, std::min(g.heads, 4 * threads), kExpandRows};
}

std::vector<Probe> probe_list(const MlaGeometry& g, int threads, double macs) {
  std::vector<Probe> probes = small_probes(g, threads);
  probes.push_back(expand_probe(g, threads, 2 * macs));
  // Every call folds its own queries, so that no fold has more rows than a call.
  const int most_folded = std::min(call_queries(g), kMostFoldRows);
  for (const int rows : kProfileRows)
    if (rows < most_folded) probes.push_back(fold_probe(g, threads, macs, rows));
  probes.push_back(fold_probe(g, threads, macs, most_folded));
  const int most = std::min(call_queries(g), kMostCoreRows);
  for (const int rows : kProfileRows)
    if (rows < most) probes.push_back(core_probe(g, threads, macs, Part::kAbsorbedCore, rows));
  probes.push_back(core_probe(g, threads, macs, Part::kAbsorbedCore, most));
  for (const int rows : kProfileRows)
    if (rows <= kMostOrdinaryRows) probes.push_back(ordinary_probe(g, threads, macs, rows));
  return probes;
}

Result<CostProfile> fit_profile(const MlaGeometry& g, const std::vector<Probe>& probes,
                                const std::vector<double>& seconds) {
  expects(probes.size() == seconds.size(), "every probe has a time");
  const std::size_t small = small_probes(g, 1).size();
  Curve fold(true), absorbed(false), ordinary(true);
  CostProfile profile;
  const auto cost = [&](std::size_t i) { return seconds[i] * 1e6 * g.heads / probes[i].heads; };
  for (std::size_t i = small; i < probes.size(); ++i) {
    const Probe& probe = probes[i];
    switch (probe.part) {
      case Part::kFold:
        fold.add(probe.rows, cost(i));
        break;
      case Part::kAbsorbedCore:
        absorbed.add(probe.rows, cost(i) / keys_seen(probe));
        break;
      case Part::kExpansion:
        profile.expand_row_us = cost(i) / probe.keys;
        break;
      case Part::kOrdinaryCore:
        ordinary.add(probe.rows, cost(i) / keys_seen(probe));
        break;
    }
  }
  profile.fold_us = fold.finish();
  profile.absorbed_key_us = absorbed.finish();
  profile.ordinary_key_us = ordinary.finish();

  for (std::size_t i = 0; i < small; ++i) {
    const Probe& probe = probes[i];
    const double share = static_cast<double>(probe.heads) / g.heads;
    double work = 0;
    if (probe.part == Part::kFold) work = profile.fold_us[0];
    if (probe.part == Part::kAbsorbedCore) work = profile.absorbed_key_us[0] * keys_seen(probe);
    if (probe.part == Part::kExpansion) work = profile.expand_row_us * probe.keys;
    if (probe.part == Part::kOrdinaryCore) work = profile.ordinary_key_us[0] * keys_seen(probe);
    const double rest = std::max(0.0, seconds[i] * 1e6 - work * share);
    (probe.part == Part::kFold || probe.part == Part::kAbsorbedCore ? profile.absorbed_us : profile.materialised_us) +=
        rest;
  }

  bool sane =
      is_cost(profile.expand_row_us) && std::isfinite(profile.absorbed_us) && std::isfinite(profile.materialised_us);
  for (const CostByRows* costs : {&profile.fold_us, &profile.absorbed_key_us, &profile.ordinary_key_us})
    sane = sane && std::all_of(costs->begin(), costs->end(), is_cost);
  if (sane) return profile;
  return fail(ErrorKind::kNumeric,
              "[calibrate] a time of nothing was measured, expected microseconds: the clock of this machine is too "
              "coarse, pass --no-calibration");
}

Result<CostProfile> measure_profile(const MlaGeometry& g, int threads, const RunProbe& run, const Now& now,
                                    const MeasureLimits& limits) {
  const double start = now();
  const Probe first = first_probe(g, threads);
  double speed_seconds = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2; ++i) {
    const Result<double> seconds = run(first);
    if (!seconds.ok()) return seconds.error();
    speed_seconds = std::min(speed_seconds, *seconds);
  }
  const double macs = probe_macs(g, first) / std::max(speed_seconds, 1e-9) * limits.probe_seconds;
  const std::vector<Probe> probes = probe_list(g, threads, macs);
  std::vector<double> least(probes.size(), std::numeric_limits<double>::infinity());
  double longest_round = 0;
  for (int round = 0; round < limits.most_rounds; ++round) {
    const double begun = now();
    if (round > 0 && begun - start + longest_round > limits.seconds) break;
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const Result<double> seconds = run(probes[i]);
      if (!seconds.ok()) return seconds.error();
      least[i] = std::min(least[i], *seconds);
    }
    longest_round = std::max(longest_round, now() - begun);
  }
  return fit_profile(g, probes, least);
}

}  // namespace latte
