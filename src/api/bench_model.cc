#include "api/bench_model.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include "api/geometry_file.h"
#include "api/machine.h"
#include "api/model_lookup.h"
#include "base/fail.h"
#include "base/random.h"
#include "decode/cache_type.h"
#include "model/rope.h"
#include "weights/random_weights.h"
#include "weights/weight_elements.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

double giga(std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

/// config.json is called after its folder, any other file after itself.
std::string name_of_config(const fs::path& file) {
  const std::string stem = file.stem().string();
  const std::string folder = fs::absolute(file).lexically_normal().parent_path().filename().string();
  return stem == "config" && !folder.empty() ? folder : stem;
}

std::string_view format_word(Quantize quantize, DType stored) {
  return quantize != Quantize::kNone ? word(quantize) : stored == DType::kF32 ? "f32" : "bf16";
}

/// Keeps the first `layers` of a configuration.
Status cut_layers(int layers, BenchConfig& bench) {
  ModelConfig& config = bench.config;
  if (layers == 0 || layers == config.layers) return {};
  if (layers < 0 || layers > config.layers) {
    return fail(ErrorKind::kInvalidInput, "[bench] {} layers of {}, expected 1 to {}", layers, bench.name,
                config.layers);
  }
  bench.name += fmt::format(" ({} of {} layers)", layers, config.layers);
  config.layers = layers;
  config.layer_kinds.resize(static_cast<std::size_t>(layers));
  return {};
}

/// The most layers whose weights fit into `room` bytes; 0: none.
int layers_that_fit(WeightSpec spec, DType stored, const std::optional<QuantisePlan>& plan, std::int64_t room) {
  while (!spec.layers.empty() && random_weight_bytes(spec, stored, plan) > room) spec.layers.pop_back();
  return static_cast<int>(spec.layers.size());
}

std::int64_t cache_bytes(const BenchRequest& request, const ModelConfig& config, int context) {
  const DType stored = config.dtype == DType::kF32 ? DType::kF32 : DType::kBf16;
  const Result<DType> cached = cached_type(request.engine.cache, stored, "[bench]");
  return config.cache_row(cached.ok() ? *cached : stored).bytes() * config.layers * context;
}

Status check_room(const BenchRequest& request, const BenchConfig& bench, const WeightSpec& spec, DType stored,
                  int context) {
  const std::optional<QuantisePlan> plan = quantise_plan(request.engine.quantize);
  const auto elements = weight_elements(spec, std::numeric_limits<std::int64_t>::max() / 16);
  const std::int64_t cache = cache_bytes(request, bench.config, context);
  const std::int64_t weights =
      std::min(random_weight_bytes(spec, stored, plan), std::numeric_limits<std::int64_t>::max() / 2);
  const std::int64_t available = available_memory_bytes();
  const int fit = layers_that_fit(spec, stored, plan, available - cache);
  return check_memory(
      fmt::format("{}: random {} weights of {:.1f} GB ({:.2f} G parameters, {} layers) and {:.2f} GB of cache",
                  bench.name, format_word(request.engine.quantize, stored), giga(weights),
                  elements.has_value() ? static_cast<double>(*elements) * 1e-9 : 0, bench.config.layers, giga(cache)),
      weights + cache, available,
      fit > 0 ? fmt::format("use --layers {} or fewer", fit) : "choose a smaller model or depth");
}

Result<std::shared_ptr<OpenModel>> make_random_model(const BenchRequest& request, BenchConfig bench, int context,
                                                     const BenchProgress& progress) {
  ModelConfig& config = bench.config;
  config.nextn_layers = 0;  // nothing is foretold by random weights
  const WeightSpec spec = weight_spec(config);
  const DType stored = config.dtype == DType::kF32 ? DType::kF32 : DType::kBf16;
  if (Status room = check_room(request, bench, spec, stored, context); !room.ok()) return room.error();
  if (progress) progress("making random weights");
  Result<ModelWeights> weights = random_weights(spec, stored, request.seed, 0, quantise_plan(request.engine.quantize));
  if (!weights.ok()) return weights.error();
  Model model{.config = std::move(config), .weights = std::move(*weights), .softmax_scale = 1, .config_digest = {}};
  model.softmax_scale = softmax_scale(model.config);
  EngineOptions options = request.engine;
  options.model = bench.name;
  options.context = context;
  return open_model(std::move(model), options, {});
}

Result<std::shared_ptr<OpenModel>> open_stored_model(const BenchRequest& request, int context,
                                                     const BenchProgress& progress) {
  EngineOptions options = request.engine;
  Result<std::string> directory = find_model(options.model);
  if (!directory.ok()) return directory.error();
  options.model = std::move(*directory);
  options.context = context;
  if (!options.draft_model.empty()) {
    Result<std::string> draft = find_model(options.draft_model);
    if (!draft.ok()) return draft.error();
    options.draft_model = std::move(*draft);
  }
  return open_model(options, [&](std::string_view stage) {
    if (progress) progress(fmt::format("loading: {}", stage));
  });
}

std::vector<TokenId> random_ids(int vocab, std::uint64_t seed, std::size_t count) {
  std::vector<TokenId> ids;
  for (std::uint32_t i = 0; ids.size() < count; ++i) {
    for (const std::uint32_t word : philox4x32({i, 0, 0, 0}, philox_key(seed)))
      ids.push_back(static_cast<TokenId>(word % static_cast<std::uint32_t>(vocab)));
  }
  ids.resize(count);
  return ids;
}

}  // namespace

Status check_memory(std::string_view what, std::int64_t bytes, std::int64_t available, std::string_view hint) {
  if (available <= 0 || bytes <= available) return {};
  return fail(ErrorKind::kOutOfMemory, "[bench] {}: {:.1f} GB in all, {:.1f} GB of memory are free: {}", what,
              giga(bytes), giga(available), hint);
}

Result<BenchConfig> read_bench_config(const BenchRequest& request) {
  std::string file = request.config_file;
  std::string name;
  if (file.empty()) {
    const Result<std::string> directory = find_model(request.engine.model);
    if (!directory.ok()) return directory.error();
    file = *directory + "/config.json";
  }
  const Result<ModelConfig> config = read_geometry(file);
  if (!config.ok()) return config.error();
  BenchConfig bench{*config, name_of_config(file)};
  if (Status cut = cut_layers(request.layers, bench); !cut.ok()) return cut.error();
  return bench;
}

Result<BenchModel> open_bench_model(const BenchRequest& request, int context, const BenchProgress& progress) {
  Result<BenchConfig> bench = read_bench_config(request);
  if (!bench.ok()) return bench.error();
  BenchModel model;
  model.random = !request.config_file.empty();
  model.name = bench->name + (model.random ? ", random" : "");
  if (!model.random) {
    const std::int64_t cache = cache_bytes(request, bench->config, context);
    const Status room = check_memory(fmt::format("{}: a cache of {} rows", model.name, context), cache,
                                     available_memory_bytes(), "use fewer rows or a smaller depth");
    if (!room.ok()) return room.error();
  }
  Result<std::shared_ptr<OpenModel>> open = model.random
                                                ? make_random_model(request, std::move(*bench), context, progress)
                                                : open_stored_model(request, context, progress);
  if (!open.ok()) return open.error();
  model.open = std::move(*open);
  auto counter = std::make_unique<CountingBackend>(std::move(model.open->backend));
  model.counter = counter.get();
  model.open->backend = std::move(counter);
  return model;
}

BenchReport begin_report(const BenchModel& model) {
  const EngineInfo& info = model.open->info;
  BenchReport report;
  report.model = model.name;
  report.weight_bytes = info.weight_bytes;
  report.parameters = info.parameters;
  report.type = info.quantize != "none"                                        ? info.quantize
                : model.open->model.weights.report.stored_dtype == DType::kF32 ? "f32"
                                                                               : "bf16";
  report.cache_type = info.cache;
  report.device = info.device;
  report.isa = info.isa;
  report.processor = processor_name();
  report.threads = info.threads;
  report.layers = model.open->model.config.layers;
  report.warnings = info.warnings;
  if (info.calibration != "none")
    report.notes.push_back("the form of prompt steps is chosen by this machine's profile (latte tune --crossover)");
  return report;
}

Result<std::vector<TokenId>> bench_ids(const OpenModel& model, const BenchRequest& request, std::size_t count) {
  if (request.text.empty()) return random_ids(model.model.config.vocab, request.seed, count);
  const Tokenizer* tokenizer = model.tokenizer();
  if (tokenizer == nullptr) {
    return fail(ErrorKind::kNotFound,
                "[bench] {}: no tokenizer, expected one to read the text with: leave the text out",
                model.info.model_directory);
  }
  std::vector<TokenId> ids;
  for (std::string_view rest = request.text; !rest.empty();) {
    const std::size_t end = rest.find('\0');
    const auto document = tokenizer->encode(rest.substr(0, end), {.add_bos = tokenizer->adds_bos()});
    if (!document.ok()) return document.error();
    ids.insert(ids.end(), document->begin(), document->end());
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
  }
  if (ids.empty())
    return fail(ErrorKind::kInvalidInput, "[bench] the text has no token, expected at least one: give another file");
  for (std::size_t i = 0; ids.size() < count; ++i) ids.push_back(ids[i]);
  return ids;
}

}  // namespace latte
