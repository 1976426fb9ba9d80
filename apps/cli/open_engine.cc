#include "open_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "outcome.h"

namespace latte::cli {

Result<CacheType> cache_choice(const Arguments& arguments) {
  const std::string bits = arguments.text_or("--kv-bits", "");
  const std::string otherwise = bits == "8" ? "q8" : bits == "16" ? "bf16" : bits == "32" ? "f32" : "auto";
  return parse_cache_type(arguments.text_or("--cache-type", otherwise));
}

namespace {

/// --threads, or --threads-batch where that is more: one pool of threads serves every step.
int threads_of(const Arguments& arguments) {
  const auto threads = static_cast<int>(arguments.integer("--threads").value_or(0));
  const auto batch = static_cast<int>(arguments.integer("--threads-batch").value_or(0));
  if (batch == 0 || batch == threads) return threads;
  if (threads == 0) {
    warn(fmt::format("--threads-batch {} is not used: without --threads every step has all physical cores", batch));
    return threads;
  }
  warn(fmt::format("--threads {} and --threads-batch {}: one pool serves all steps, it gets {} threads", threads, batch,
                   std::max(threads, batch)));
  return std::max(threads, batch);
}

}  // namespace

Result<EngineOptions> engine_options(const Arguments& arguments) {
  const Result<ComputeType> compute = parse_compute_type(arguments.text_or("--dtype", "auto"));
  const Result<CacheType> cache = cache_choice(arguments);
  const Result<PathChoice> path = parse_path(arguments.text_or("--mla-path", "auto"));
  const Result<Numerics> numerics = parse_numerics(arguments.text_or("--numerics", "fast"));
  if (!compute.ok()) return compute.error();
  if (!cache.ok()) return cache.error();
  if (!path.ok()) return path.error();
  if (!numerics.ok()) return numerics.error();
  const Result<Quantize> quantize = parse_quantize(arguments.text_or("--quantize", "none"));
  if (!quantize.ok()) return quantize.error();
  return EngineOptions{
      .model = arguments.text_or("--model", ""),
      .draft_model = arguments.text_or("--draft-model", ""),
      .device = arguments.text_or("--device", "auto"),
      .isa = arguments.text_or("--isa", "auto"),
      .threads = threads_of(arguments),
      .context = static_cast<int>(arguments.integer("--ctx-size").value_or(0)),
      .compute = *compute,
      .cache = *cache,
      .path = *path,
      .numerics = *numerics,
      .quantize = *quantize,
      .calibration = arguments.flag("--no-calibration") ? Calibration::kOff : Calibration::kMeasure,
  };
}

Result<Engine> open_engine(const Arguments& arguments, ProgressLine& progress, bool measures) {
  Result<EngineOptions> options = engine_options(arguments);
  if (!options.ok()) return options.error();
  if (!measures) options->calibration = std::min(options->calibration, Calibration::kStored);
  Result<Engine> engine =
      Engine::open(*options, [&progress](std::string_view stage) { progress.show("loading: " + std::string(stage)); });
  progress.clear();
  if (engine.ok()) {
    for (const std::string& warning : engine->info().warnings) warn(warning);
  }
  return engine;
}

}  // namespace latte::cli
