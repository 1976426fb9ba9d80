#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/geometry_file.h"
#include "api/model_lookup.h"
#include "api/out_of_memory.h"
#include "base/fail.h"
#include "decode/cache_type.h"
#include "decode/calibration.h"
#include "decode/isa_choice.h"
#include "decode/open_model.h"
#include "device/open_backend.h"
#include "io/checkpoint.h"
#include "latte/report.h"
#include "model/config.h"
#include "plan/choose_form.h"
#include "weights/weight_elements.h"

namespace latte {
namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max();

std::string decimal(WideInt value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

StepDecision decide(const ModelConfig& config, const PlanRequest& request, const CostProfile* profile) {
  if (config.attention == AttentionKind::kGqa) {
    return {.form = form_name(MlaForm::kGqa),
            .reason = "gqa: keys and values are cached as they are, there is no form to choose",
            .absorbed_macs = {},
            .materialised_macs = {}};
  }
  const MlaGeometry& geometry = config.geometry;
  const StepShape step{.new_rows = *request.new_rows, .rows_after_append = *request.cached_rows, .role = Role::kPrompt};
  const FormRule rule(path_of(request.path), profile);
  return {.form = form_name(choose_form(geometry, step, rule)),
          .reason = explain_form(geometry, step, rule),
          .absorbed_macs = decimal(absorbed_macs(geometry, step)),
          .materialised_macs = decimal(materialised_macs(geometry, step))};
}

Result<std::int64_t> file_bytes(const std::string& directory) {
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory);
  if (!checkpoint.ok()) return checkpoint.error();
  std::int64_t bytes = 0;
  for (const TensorView& tensor : checkpoint->tensors()) bytes += static_cast<std::int64_t>(tensor.bytes);
  return bytes;
}

bool has_weights(const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::path folder(directory);
  return std::filesystem::exists(folder / "model.safetensors", ignored) ||
         std::filesystem::exists(folder / "model.safetensors.index.json", ignored);
}

PlanReport describe(const ModelConfig& config) {
  const bool gqa = config.attention == AttentionKind::kGqa;
  const MlaGeometry& g = config.geometry;
  PlanReport report;
  report.family = config.family;
  report.attention = gqa ? "gqa" : "mla";
  report.heads = gqa ? config.gqa.heads : g.heads;
  report.r = g.r;
  report.p = g.p;
  report.n = g.n;
  report.v = g.v;
  report.kv_heads = config.gqa.kv_heads;
  report.head_dim = config.gqa.head_dim;
  report.layers = config.layers;
  report.mtp_layers = config.nextn_layers;
  report.context_length = config.context_length;
  report.assumed = config.assumed;
  report.cache_values_per_token = std::int64_t{config.cache_width()} * config.layers;
  report.mtp_cache_values_per_token = std::int64_t{config.cache_width()} * config.nextn_layers;
  return report;
}

void add_crossovers(const MlaGeometry& g, const CostProfile* profile, PlanReport& report) {
  for (const std::int64_t cached : {512, 2048, 8192, 32768}) {
    report.crossover.push_back({cached, max_absorbed_rows(g, cached)});
    if (profile != nullptr) report.calibrated.push_back({cached, max_absorbed_rows(g, cached, *profile)});
  }
  for (int quarter = 0; quarter <= 36; ++quarter) {
    const auto cached = static_cast<std::int64_t>(256 * std::exp2(quarter / 4.0));
    CrossoverPoint point{.cached = cached, .formula_rows = max_absorbed_rows(g, cached), .profile_rows = {}};
    if (profile != nullptr) point.profile_rows = max_absorbed_rows(g, cached, *profile);
    report.curve.push_back(point);
  }
  // On a cold cache the formula reads d > 2r, whatever L is; a single row is absorbed before any formula.
  if (g.expanded_width() <= 2 * g.r) report.cold_rows = 1;
  report.limit_rows = absorbed_rows_limit(g);
}

/// The profile that an engine with these options would find; nothing where it would use none.
Result<std::optional<CostProfile>> stored_profile(const PlanRequest& request, const ModelConfig& config,
                                                  const std::string& directory, PlanReport& report) {
  if (request.calibration == Calibration::kOff || config.attention != AttentionKind::kMla)
    return std::optional<CostProfile>();
  EngineOptions options;
  options.compute = request.compute;
  options.cache = request.cache;
  const Result<MeasuredTypes> types = measured_types(options, config, directory);
  if (!types.ok()) return types.error();
  if (!is_measured(types->probe.cache)) return std::optional<CostProfile>();
  const FoundIsa isa = find_isa(this_machine(), {request.isa, request.device, request.threads}, IsaSource::kStored);
  report.warnings.insert(report.warnings.end(), isa.warnings.begin(), isa.warnings.end());
  const Result<std::unique_ptr<Backend>> backend =
      open_backend({.device = request.device, .isa = isa.isa, .threads = request.threads, .compute = types->compute});
  if (!backend.ok()) return backend.error();
  if ((*backend)->info().name == "reference") return std::optional<CostProfile>();
  FoundProfile found = find_profile(**backend, config.geometry, types->probe, false, {});
  report.warnings.insert(report.warnings.end(), found.warnings.begin(), found.warnings.end());
  if (found.profile.has_value()) report.profile_file = found.file;
  return found.profile;
}

Result<PlanReport> make_plan(const PlanRequest& request) {
  if (request.model.empty() == request.config_file.empty()) {
    return fail(ErrorKind::kInvalidInput, "[plan] expected either a model or a config file");
  }
  if (request.new_rows.has_value() != request.cached_rows.has_value()) {
    return fail(ErrorKind::kInvalidInput,
                "[plan] new and cached rows decide one step together, expected both or neither");
  }
  if (request.new_rows.has_value() && (*request.new_rows < 1 || *request.cached_rows < *request.new_rows)) {
    return fail(ErrorKind::kInvalidInput,
                "[plan] {} new rows of {} cached, which count the new ones: expected 1 <= new <= cached",
                *request.new_rows, *request.cached_rows);
  }
  if (request.context < 0)
    return fail(ErrorKind::kInvalidInput, "[plan] context of {} tokens, expected 0 (the model's) or more",
                request.context);
  if (request.new_rows.has_value() && *request.cached_rows > kMostRows) {
    return fail(ErrorKind::kInvalidInput, "[plan] {} cached rows, expected at most {}", *request.cached_rows,
                kMostRows);
  }
  std::string directory;
  if (!request.model.empty()) {
    Result<std::string> found = find_model(request.model);
    if (!found.ok()) return found.error();
    directory = std::move(*found);
  }
  const std::string source = directory.empty() ? request.config_file : directory + "/config.json";
  const Result<ModelConfig> config = read_geometry(source);
  if (!config.ok()) return config.error();
  const bool wide = config->dtype == DType::kF32 || config->dtype == DType::kF64;
  const Result<DType> cache = cached_type(request.cache, wide ? DType::kF32 : DType::kBf16, "[plan]");
  if (!cache.ok()) return cache.error();

  PlanReport report = describe(*config);
  report.warnings = taken_for_granted(*config, source);
  report.cache = type_word(*cache);
  const auto stored = static_cast<std::int64_t>(dtype_bytes(config->dtype));
  const std::optional<std::int64_t> elements = weight_elements(weight_spec(*config), kMostBytes / stored);
  const WideInt expanded = expanded_row_bytes(*config, *cache) * config->layers;
  if (!elements.has_value() || expanded > kMostBytes) {
    return fail(ErrorKind::kInvalidInput,
                "[plan] {}: the sizes multiply to more than 2^63 bytes, expected those of a model: check the "
                "configuration",
                source);
  }
  report.latent_bytes_per_token = config->cache_row(*cache).bytes() * config->layers;
  report.expanded_bytes_per_token = static_cast<std::int64_t>(expanded);
  report.planned_context = request.context > 0 ? request.context : report.context_length;
  const WideInt cache_bytes = WideInt{report.latent_bytes_per_token} * report.planned_context;
  report.planned_cache_bytes = static_cast<std::int64_t>(std::min(cache_bytes, WideInt{kMostBytes}));
  if (report.planned_context > report.context_length) {
    report.warnings.push_back(fmt::format("--ctx-size {} is beyond the model's length {}: text past it may be poor",
                                          report.planned_context, report.context_length));
  }
  report.weights_bytes = *elements * stored;
  if (!directory.empty() && has_weights(directory)) {
    const Result<std::int64_t> bytes = file_bytes(directory);
    if (!bytes.ok()) return bytes.error();
    report.weights_bytes = *bytes;
  }
  const Result<std::optional<CostProfile>> found = stored_profile(request, *config, directory, report);
  if (!found.ok()) return found.error();
  const CostProfile* profile = found->has_value() ? &**found : nullptr;
  if (config->attention == AttentionKind::kMla) add_crossovers(config->geometry, profile, report);
  if (request.new_rows.has_value()) report.step = decide(*config, request, profile);
  return report;
}

}  // namespace

Result<PlanReport> plan(const PlanRequest& request) {
  return reporting_no_memory([&] { return make_plan(request); });
}

}  // namespace latte
