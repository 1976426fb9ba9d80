#include "latte/tune.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "api/form_timer.h"
#include "api/geometry_file.h"
#include "api/model_lookup.h"
#include "api/out_of_memory.h"
#include "base/fail.h"
#include "base/stopwatch.h"
#include "decode/calibration.h"
#include "decode/isa_choice.h"
#include "decode/profile_store.h"
#include "device/open_backend.h"
#include "plan/choose_form.h"

namespace latte {
namespace {

constexpr std::array kGridRows = {1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024};
constexpr std::array kGridCached = {256, 512, 1024, 2048, 4096, 8192, 16384, 32768};

// Who asks for it waits for more rounds than one who opens a model.
constexpr MeasureLimits kPatient{.seconds = 6, .most_rounds = 48};

/// What is tuned, on its device.
struct Subject {
  std::string name;
  MlaGeometry geometry;
  ProbeTypes types;
  std::unique_ptr<Backend> backend;
};

Result<Subject> open_subject(const CrossoverRequest& request, const TuneProgress& progress) {
  const EngineOptions& options = request.engine;
  if (options.model.empty() == request.config_file.empty())
    return fail(ErrorKind::kInvalidInput, "[tune] expected either a model or a config file");
  Subject subject;
  std::string directory;
  if (!options.model.empty()) {
    Result<std::string> found = find_model(options.model);
    if (!found.ok()) return found.error();
    directory = std::move(*found);
  }
  subject.name = directory.empty() ? request.config_file : directory;
  const Result<ModelConfig> config =
      read_geometry(directory.empty() ? request.config_file : directory + "/config.json");
  if (!config.ok()) return config.error();
  if (config->attention != AttentionKind::kMla) {
    return fail(ErrorKind::kUnsupported,
                "[tune] {}: family {} has grouped-query attention, which has one form: choose a model with latent "
                "attention",
                subject.name, config->family);
  }
  subject.geometry = config->geometry;
  const Result<MeasuredTypes> types = measured_types(options, *config, directory);
  if (!types.ok()) return types.error();
  if (!is_measured(types->probe.cache)) {
    return fail(ErrorKind::kUnsupported,
                "[tune] cache type {}: costs are measured on rows of floats alone: leave "
                "--cache-type out or give bf16, f16 or f32",
                word(options.cache));
  }
  const FoundIsa isa =
      find_isa(this_machine(), {options.isa, options.device, options.threads}, IsaSource::kAnew, progress);
  Result<std::unique_ptr<Backend>> backend =
      open_backend({.device = options.device, .isa = isa.isa, .threads = options.threads, .compute = types->compute});
  if (!backend.ok()) return backend.error();
  if ((*backend)->info().name == "reference") {
    return fail(ErrorKind::kUnsupported,
                "[tune] device reference computes in double to check the others, expected cpu: leave --device out");
  }
  subject.types = types->probe;
  subject.backend = std::move(*backend);
  return subject;
}

CrossoverCell cell_of(const MlaGeometry& g, int rows, int cached, const CostProfile& profile) {
  const StepShape step{rows, cached, Role::kPrompt};
  CrossoverCell cell;
  cell.rows = rows;
  cell.cached = cached;
  cell.absorbed_us = absorbed_us(profile, rows, cached);
  cell.materialised_us = materialised_us(profile, rows, cached);
  cell.formula = form_name(choose_form(g, step, MlaPath::kFormula));
  cell.profile = form_name(choose_form(g, step, FormRule(MlaPath::kAuto, &profile)));
  return cell;
}

void judge(CrossoverCell& cell) {
  const double better = std::min(cell.absorbed_us, cell.materialised_us);
  const auto regret = [&](const std::string& form) {
    return (form == form_name(MlaForm::kAbsorbed) ? cell.absorbed_us : cell.materialised_us) / better;
  };
  cell.better = form_name(better == cell.absorbed_us ? MlaForm::kAbsorbed : MlaForm::kMaterialised);
  cell.formula_regret = regret(cell.formula);
  cell.profile_regret = regret(cell.profile);
}

RegretSummary summary_of(const std::vector<CrossoverCell>& cells, double CrossoverCell::*regret) {
  RegretSummary summary;
  for (const CrossoverCell& cell : cells) {
    if (!cell.measured) continue;
    ++summary.cells;
    summary.within_5_percent += cell.*regret <= 1.05;
    summary.within_10_percent += cell.*regret <= 1.10;
    summary.worst = std::max(summary.worst, cell.*regret);
  }
  if (summary.cells > 0) {
    summary.within_5_percent /= summary.cells;
    summary.within_10_percent /= summary.cells;
  }
  return summary;
}

/// Times cells, the quick ones first, until the time is up.
Status time_grid(Subject& subject, const CostProfile& profile, double seconds, const TuneProgress& progress,
                 std::vector<CrossoverCell>& cells) {
  FormTimer timer(*subject.backend, subject.geometry, subject.types);
  const double share = seconds / static_cast<double>(cells.size());
  // Slices are cut so that a turn of both forms takes about a quarter of a cell's share.
  const double macs_per_second =
      1e6 * subject.geometry.heads * subject.geometry.r * subject.geometry.expanded_width() / profile.expand_row_us;
  std::vector<std::pair<double, std::size_t>> order;
  std::vector<FormSlices> heads;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    heads.push_back(timer.slices(cells[i].rows, cells[i].cached, macs_per_second * share / 8));
    order.emplace_back(timer.expected_seconds(cells[i].rows, cells[i].cached, heads[i], profile), i);
  }
  std::sort(order.begin(), order.end());
  const Stopwatch clock;
  for (const auto& [expected, i] : order) {
    const double left = seconds - clock.seconds();
    if (expected > left) break;
    CrossoverCell& cell = cells[i];
    if (progress) progress(fmt::format("L {}, T {}", cell.rows, cell.cached));
    const Result<FormTimes> times = timer.time(cell.rows, cell.cached, heads[i], std::max(share, expected));
    if (!times.ok()) return times.error();
    cell.measured = true;
    cell.absorbed_us = times->absorbed_us;
    cell.materialised_us = times->materialised_us;
  }
  return {};
}

Result<CrossoverReport> tune(const CrossoverRequest& request, const TuneProgress& progress) {
  Result<Subject> subject = open_subject(request, progress);
  if (!subject.ok()) return subject.error();
  Backend& backend = *subject->backend;
  const MlaGeometry& g = subject->geometry;
  const ProfileKey key = profile_key(backend.info(), g, subject->types);
  const Result<std::string> path = profile_path(key);
  if (!path.ok()) return path.error();
  if (Status possible = can_write_stored(*path); !possible.ok()) return possible.error();

  if (progress) progress("measuring the parts of both forms");
  const Stopwatch clock;
  const Result<CostProfile> profile = calibrate(backend, g, subject->types, kPatient);
  if (!profile.ok()) return profile.error();
  CrossoverReport report;
  report.profile_seconds = clock.seconds();
  if (Status written = write_profile(*path, key, *profile); !written.ok()) return written.error();

  report.model = subject->name;
  report.device = key.device;
  report.isa = key.isa;
  report.processor = key.processor;
  report.threads = key.threads;
  report.heads = g.heads;
  report.r = g.r;
  report.p = g.p;
  report.n = g.n;
  report.v = g.v;
  report.cache = key.cache;
  report.weights = key.weights;
  report.profile_file = *path;
  for (const int cached : kGridCached) {
    report.crossover.push_back({cached, max_absorbed_rows(g, cached)});
    report.calibrated.push_back({cached, max_absorbed_rows(g, cached, *profile)});
    for (const int rows : kGridRows)
      if (rows <= cached) report.cells.push_back(cell_of(g, rows, cached, *profile));
  }
  if (request.seconds > 0) {
    if (Status timed = time_grid(*subject, *profile, request.seconds, progress, report.cells); !timed.ok())
      return timed.error();
  }
  for (CrossoverCell& cell : report.cells) judge(cell);
  report.formula_regret = summary_of(report.cells, &CrossoverCell::formula_regret);
  report.profile_regret = summary_of(report.cells, &CrossoverCell::profile_regret);
  return report;
}

}  // namespace

Result<CrossoverReport> tune_crossover(const CrossoverRequest& request, const TuneProgress& progress) {
  return reporting_no_memory([&] { return tune(request, progress); });
}

}  // namespace latte
