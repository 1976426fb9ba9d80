#include <filesystem>
#include <utility>

#include "api/model_lookup.h"
#include "base/fail.h"
#include "io/checkpoint.h"
#include "latte/report.h"
#include "model/config.h"
#include "plan/choose_form.h"

namespace latte {
namespace {

std::int64_t attention_elements(const WeightSpec& spec) {
  const MlaGeometry& g = spec.geometry;
  const std::int64_t hidden = spec.hidden, queries = std::int64_t{g.heads} * g.key_width(), rank = spec.q_lora_rank;
  const std::int64_t q = rank == 0 ? queries * hidden : rank * (hidden + 1 + queries);
  const std::int64_t kv = hidden * g.latent_width() + g.r + std::int64_t{g.heads} * g.expanded_width() * g.r;
  return q + kv + std::int64_t{g.heads} * g.v * hidden;
}

std::int64_t layer_elements(const WeightSpec& spec, FfnKind kind) {
  const std::int64_t hidden = spec.hidden;
  const std::int64_t norms = 2 * hidden;
  if (kind == FfnKind::kDense) return norms + attention_elements(spec) + 3 * hidden * spec.intermediate;
  const std::int64_t blocks = std::int64_t{spec.experts} + spec.shared_experts;
  const std::int64_t router = spec.experts * (hidden + (spec.router_bias ? 1 : 0));
  return norms + attention_elements(spec) + router + 3 * hidden * spec.moe_intermediate * blocks;
}

/// Elements of all weights, MTP layers without copies of embedding and head.
std::int64_t weight_elements(const WeightSpec& spec) {
  const std::int64_t hidden = spec.hidden, table = spec.vocab * hidden;
  std::int64_t total = table + hidden + (spec.tie_word_embeddings ? 0 : table);
  for (const FfnKind kind : spec.layers) total += layer_elements(spec, kind);
  return total + spec.nextn_layers * (layer_elements(spec, spec.nextn_kind) + 2 * hidden * hidden + 3 * hidden);
}

std::string decimal(WideInt value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

MlaPath path_of(PathChoice choice) {
  switch (choice) {
    case PathChoice::kAbsorbed:
      return MlaPath::kAbsorbed;
    case PathChoice::kMaterialised:
      return MlaPath::kMaterialised;
    case PathChoice::kFormula:
      return MlaPath::kFormula;
    case PathChoice::kAuto:
      break;
  }
  return MlaPath::kAuto;
}

StepDecision decide(const MlaGeometry& geometry, const PlanRequest& request) {
  const StepShape step{.new_rows = *request.new_rows, .rows_after_append = *request.cached_rows, .role = Role::kPrompt};
  return {.form = form_name(choose_form(geometry, step, path_of(request.path))),
          .reason = explain_form(geometry, step, path_of(request.path)),
          .absorbed_macs = decimal(absorbed_macs(geometry, step)),
          .materialised_macs = decimal(materialised_macs(geometry, step))};
}

/// A released config.json names how its own weights are quantised, which changes no geometry.
Result<ModelConfig> read_config(const std::string& path) {
  Result<Json> json = read_json_file(path);
  if (!json.ok()) return json.error();
  if (json->is_object()) json->erase("quantization_config");
  return parse_config(*json, path);
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

Result<DType> cached_as(CacheType asked, DType stored) {
  if (asked == CacheType::kF32) return DType::kF32;
  if (asked == CacheType::kBf16) return DType::kBf16;
  if (asked == CacheType::kAuto) return stored == DType::kF32 || stored == DType::kF64 ? DType::kF32 : DType::kBf16;
  return fail(ErrorKind::kUnsupported, "[plan] cache type {} is not supported yet, expected bf16 or f32", word(asked));
}

}  // namespace

Result<PlanReport> plan(const PlanRequest& request) {
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
  std::string directory;
  if (!request.model.empty()) {
    Result<std::string> found = find_model(request.model);
    if (!found.ok()) return found.error();
    directory = std::move(*found);
  }
  const Result<ModelConfig> config = read_config(directory.empty() ? request.config_file : directory + "/config.json");
  if (!config.ok()) return config.error();
  const Result<DType> cache = cached_as(request.cache, config->dtype);
  if (!cache.ok()) return cache.error();

  const MlaGeometry& g = config->geometry;
  const auto size = static_cast<std::int64_t>(dtype_bytes(*cache));
  PlanReport report;
  report.family = config->family;
  report.heads = g.heads;
  report.r = g.r;
  report.p = g.p;
  report.n = g.n;
  report.v = g.v;
  report.layers = config->layers;
  report.context_length = config->context_length;
  report.cache = *cache == DType::kF32 ? "f32" : "bf16";
  report.latent_bytes_per_token = std::int64_t{g.latent_width()} * size * config->layers;
  report.expanded_bytes_per_token = std::int64_t{g.heads} * (g.key_width() + g.v) * size * config->layers;
  report.weights_bytes = weight_elements(weight_spec(*config)) * static_cast<std::int64_t>(dtype_bytes(config->dtype));
  if (!directory.empty() && has_weights(directory)) {
    const Result<std::int64_t> bytes = file_bytes(directory);
    if (!bytes.ok()) return bytes.error();
    report.weights_bytes = *bytes;
  }
  for (const std::int64_t cached : {512, 2048, 8192, 32768})
    report.crossover.push_back({cached, max_absorbed_rows(g, cached)});
  // On a cold cache the formula reads d > 2r, whatever L is; a single row is absorbed before any formula.
  if (g.expanded_width() <= 2 * g.r) report.cold_rows = 1;
  report.limit_rows = absorbed_rows_limit(g);
  if (request.new_rows.has_value()) report.step = decide(g, request);
  return report;
}

}  // namespace latte
