#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "latte/tune.h"
#include "open_engine.h"
#include "outcome.h"
#include "progress_line.h"

namespace latte::cli {
namespace {

using Object = nlohmann::ordered_json;

Object rows_json(const std::vector<CrossoverRow>& rows) {
  Object list = Object::array();
  for (const CrossoverRow& row : rows) {
    list.push_back(
        {{"cached", row.cached},
         {"max_absorbed_rows", row.max_absorbed_rows.has_value() ? Object(*row.max_absorbed_rows) : Object(nullptr)}});
  }
  return list;
}

Object summary_json(const RegretSummary& summary) {
  return {{"cells", summary.cells},
          {"within_5_percent", summary.within_5_percent},
          {"within_10_percent", summary.within_10_percent},
          {"worst", summary.worst}};
}

std::string json_text(const CrossoverReport& report) {
  Object cells = Object::array();
  for (const CrossoverCell& cell : report.cells) {
    cells.push_back({{"rows", cell.rows},
                     {"cached", cell.cached},
                     {"measured", cell.measured},
                     {"absorbed_us", cell.absorbed_us},
                     {"materialised_us", cell.materialised_us},
                     {"formula", cell.formula},
                     {"profile", cell.profile},
                     {"better", cell.better},
                     {"formula_regret", cell.formula_regret},
                     {"profile_regret", cell.profile_regret}});
  }
  const Object object = {
      {"model", report.model},
      {"geometry", {{"heads", report.heads}, {"r", report.r}, {"p", report.p}, {"n", report.n}, {"v", report.v}}},
      {"device", report.device},
      {"isa", report.isa},
      {"processor", report.processor},
      {"threads", report.threads},
      {"cache", report.cache},
      {"weights", report.weights},
      {"profile_seconds", report.profile_seconds},
      {"profile_file", report.profile_file},
      {"crossover", rows_json(report.crossover)},
      {"calibrated", rows_json(report.calibrated)},
      {"formula_regret", summary_json(report.formula_regret)},
      {"profile_regret", summary_json(report.profile_regret)},
      {"cells", cells}};
  return object.dump(-1, ' ', false, Object::error_handler_t::replace) + "\n";
}

std::string rows_text(const std::optional<std::int64_t>& rows) {
  return rows.has_value() ? fmt::format("{}", *rows) : std::string("always");
}

std::string summary_text(const char* name, const RegretSummary& summary) {
  return fmt::format("by {:<8} {:.0f}% of the cells within 5% of the better form, {:.0f}% within 10%, worst {:.2f}x\n",
                     name, summary.within_5_percent * 100, summary.within_10_percent * 100, summary.worst);
}

std::string table_text(const CrossoverReport& report) {
  std::string text = fmt::format(
      "{}: {} heads, r {}, p {}, n {}, v {}\n{}, {} ({}), {} threads, cache {}, weights {}\n"
      "profile measured in {:.2f} s: {}\n\n",
      report.model, report.heads, report.r, report.p, report.n, report.v, report.processor, report.device, report.isa,
      report.threads, report.cache, report.weights, report.profile_seconds, report.profile_file);
  text += "cached rows T   absorbed up to L rows by formula   by profile\n";
  for (std::size_t i = 0; i < report.crossover.size(); ++i) {
    text += fmt::format("{:>13}   {:<32}   {}\n", report.crossover[i].cached,
                        rows_text(report.crossover[i].max_absorbed_rows),
                        rows_text(report.calibrated[i].max_absorbed_rows));
  }
  if (report.formula_regret.cells == 0) return text;
  text +=
      "\n      T      L   absorbed ms   materialised ms   formula        profile        better         "
      "regret: formula  profile\n";
  for (const CrossoverCell& cell : report.cells) {
    if (!cell.measured) continue;
    text += fmt::format("{:>7} {:>6} {:>13.3f} {:>17.3f}   {:<14} {:<14} {:<14} {:>15.2f} {:>8.2f}\n", cell.cached,
                        cell.rows, cell.absorbed_us * 1e-3, cell.materialised_us * 1e-3, cell.formula, cell.profile,
                        cell.better, cell.formula_regret, cell.profile_regret);
  }
  text += fmt::format("\n{} of {} cells measured; times are of one layer\n", report.profile_regret.cells,
                      report.cells.size());
  return text + summary_text("formula", report.formula_regret) + summary_text("profile", report.profile_regret);
}

}  // namespace

int run_tune(const Arguments& arguments) {
  if (arguments.has("--model") == arguments.has("--config"))
    return misused("tune expects exactly one of -m DIR and --config config.json");
  if (!arguments.flag("--crossover")) {
    return misused(
        "tune measures the forms of the attention, expected --crossover; what speculation gains latte generate tells "
        "of "
        "each run");
  }
  Result<EngineOptions> engine = engine_options(arguments);
  if (!engine.ok()) return misused(engine.error());
  ProgressLine progress(arguments);
  const Result<CrossoverReport> report = tune_crossover({.engine = *engine,
                                                         .config_file = arguments.text_or("--config", ""),
                                                         .seconds = arguments.real("--seconds").value_or(60)},
                                                        [&](std::string_view stage) { progress.show(stage); });
  progress.clear();
  if (!report.ok()) return failed(report.error());
  return finish_with(arguments.flag("--json") ? json_text(*report) : table_text(*report));
}

}  // namespace latte::cli
