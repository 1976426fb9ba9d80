#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "commands.h"
#include "latte/report.h"
#include "open_engine.h"
#include "outcome.h"
#include "plan_plot.h"

namespace latte::cli {
namespace {

using Object = nlohmann::ordered_json;

Object rows_or_null(const std::optional<std::int64_t>& rows) {
  return rows.has_value() ? Object(*rows) : Object(nullptr);
}

Object geometry_json(const PlanReport& plan) {
  if (plan.attention == "gqa") return {{"heads", plan.heads}, {"kv_heads", plan.kv_heads}, {"head_dim", plan.head_dim}};
  return {{"heads", plan.heads}, {"r", plan.r}, {"p", plan.p}, {"n", plan.n}, {"v", plan.v}};
}

Object crossover_json(const std::vector<CrossoverRow>& rows) {
  Object crossover = Object::array();
  for (const CrossoverRow& row : rows) {
    crossover.push_back({{"cached", row.cached}, {"max_absorbed_rows", rows_or_null(row.max_absorbed_rows)}});
  }
  return crossover;
}

std::string plan_json(const PlanReport& plan) {
  Object object = {
      {"family", plan.family},
      {"attention", plan.attention},
      {"geometry", geometry_json(plan)},
      {"layers", plan.layers},
      {"mtp_layers", plan.mtp_layers},
      {"context_length", plan.context_length},
      {"cache", plan.cache},
      {"cache_values_per_token", plan.cache_values_per_token},
      {"mtp_cache_values_per_token", plan.mtp_cache_values_per_token},
      {"latent_bytes_per_token", plan.latent_bytes_per_token},
      {"expanded_bytes_per_token", plan.expanded_bytes_per_token},
      {"weights_bytes", plan.weights_bytes},
      {"context", plan.planned_context},
      {"cache_bytes", plan.planned_cache_bytes},
      {"assumed", plan.assumed},
      {"crossover", crossover_json(plan.crossover)},
      {"crossover_cold", rows_or_null(plan.cold_rows)},
      {"crossover_limit", rows_or_null(plan.limit_rows)},
  };
  if (!plan.calibrated.empty()) {
    object["calibrated"] = crossover_json(plan.calibrated);
    object["profile_file"] = plan.profile_file;
  }
  if (plan.step.has_value()) {
    object["form"] = plan.step->form;
    object["reason"] = plan.step->reason;
  }
  std::string text = object.dump();
  if (plan.step.has_value() && !plan.step->absorbed_macs.empty()) {
    // Numbers that may exceed 64 bits, which the writer of objects has no type for.
    text.pop_back();
    text += fmt::format(",\"absorbed_macs\":{},\"materialised_macs\":{}}}", plan.step->absorbed_macs,
                        plan.step->materialised_macs);
  }
  return text + "\n";
}

std::string crossover_text(const PlanReport& plan) {
  const auto rows = [](const std::optional<std::int64_t>& most) {
    return most.has_value() ? fmt::format("{}", *most) : std::string("always");
  };
  if (plan.calibrated.empty()) {
    std::string text = "cached rows T   absorbed up to L rows (formula; wider steps materialise)\n";
    text += fmt::format("{:>13}   {}\n", "cold (T = L)", rows(plan.cold_rows));
    for (const CrossoverRow& row : plan.crossover)
      text += fmt::format("{:>13}   {}\n", row.cached, rows(row.max_absorbed_rows));
    return text + fmt::format("{:>13}   {}\n", "limit", rows(plan.limit_rows));
  }
  std::string text = "cached rows T   absorbed up to L rows by formula   by this machine's profile\n";
  const auto line = [&](const std::string& cached, const std::string& formula, const std::string& profile) {
    text += fmt::format("{:>13}   {:<32}   {}\n", cached, formula, profile);
  };
  line("cold (T = L)", rows(plan.cold_rows), "");
  for (std::size_t i = 0; i < plan.crossover.size(); ++i) {
    line(fmt::format("{}", plan.crossover[i].cached), rows(plan.crossover[i].max_absorbed_rows),
         rows(plan.calibrated[i].max_absorbed_rows));
  }
  line("limit", rows(plan.limit_rows), "");
  return text + fmt::format("profile: {}\n", plan.profile_file);
}

/// "1.50 GiB", "12.25 MiB".
std::string size_text(double bytes) {
  constexpr double kMib = 1 << 20, kGib = 1 << 30;
  return bytes >= kGib ? fmt::format("{:.2f} GiB", bytes / kGib) : fmt::format("{:.2f} MiB", bytes / kMib);
}

std::string plan_text(const PlanReport& plan) {
  const bool gqa = plan.attention == "gqa";
  const char* kind = gqa ? "key-value" : "latent";
  std::string text = gqa ? fmt::format("{}: {} layers, {} heads, {} of keys and values, width {}\n", plan.family,
                                       plan.layers, plan.heads, plan.kv_heads, plan.head_dim)
                         : fmt::format("{}: {} layers, {} heads, r {}, p {}, n {}, v {}\n", plan.family, plan.layers,
                                       plan.heads, plan.r, plan.p, plan.n, plan.v);
  text += fmt::format("weights             {:>14}\n", size_text(static_cast<double>(plan.weights_bytes)));
  text += fmt::format("{:<20}{:>14} per 1024 tokens ({}, {} values, {} bytes a token)\n", fmt::format("{} cache", kind),
                      size_text(static_cast<double>(plan.latent_bytes_per_token) * 1024), plan.cache,
                      plan.cache_values_per_token, plan.latent_bytes_per_token);
  if (plan.mtp_layers > 0)
    text += fmt::format("MTP layer, beside it{:>14} values a token\n", plan.mtp_cache_values_per_token);
  if (!gqa) {
    text += fmt::format("expanded, to compare{:>14} per 1024 tokens\n",
                        size_text(static_cast<double>(plan.expanded_bytes_per_token) * 1024));
  }
  text += fmt::format("{} cache at {} tokens: {}\n\n", kind, plan.planned_context,
                      size_text(static_cast<double>(plan.planned_cache_bytes)));
  text += gqa ? "keys and values are cached as they are: one form, no crossover\n" : crossover_text(plan);
  if (plan.step.has_value()) text += fmt::format("\n{}\n", plan.step->reason);
  return text;
}

}  // namespace

int run_plan(const Arguments& arguments) {
  if (arguments.has("--model") == arguments.has("--config"))
    return misused("plan expects exactly one of -m DIR and --config config.json");
  if (arguments.has("--new") != arguments.has("--cached"))
    return misused("--new and --cached decide one step together, expected both or neither");
  const std::optional<std::int64_t> new_rows = arguments.integer("--new"), cached_rows = arguments.integer("--cached");
  if (new_rows.has_value() && *cached_rows < *new_rows) {
    return misused(fmt::format("--cached {} counts the new rows, expected at least --new {}", *cached_rows, *new_rows));
  }
  const Result<EngineOptions> engine = engine_options(arguments);
  if (!engine.ok()) return misused(engine.error());
  const bool calibrated = engine->calibration != Calibration::kOff;
  const Result<PlanReport> report = plan({.model = engine->model,
                                          .config_file = arguments.text_or("--config", ""),
                                          .cache = engine->cache,
                                          .path = engine->path,
                                          .calibration = calibrated ? Calibration::kStored : Calibration::kOff,
                                          .device = engine->device,
                                          .isa = engine->isa,
                                          .threads = engine->threads,
                                          .compute = engine->compute,
                                          .context = arguments.integer("--ctx-size").value_or(0),
                                          .new_rows = new_rows,
                                          .cached_rows = cached_rows});
  if (!report.ok()) return failed(report.error());
  for (const std::string& warning : report->warnings) warn(warning);
  if (const auto file = arguments.text("--plot")) {
    if (const Status drawn = write_plot(*report, *file); !drawn.ok()) return failed(drawn.error());
  }
  return finish_with(arguments.flag("--json") ? plan_json(*report) : plan_text(*report));
}

}  // namespace latte::cli
