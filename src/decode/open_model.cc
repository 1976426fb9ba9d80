#include "decode/open_model.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/fail.h"
#include "decode/cache_type.h"
#include "decode/calibration.h"
#include "decode/isa_choice.h"
#include "decode/logit_rules.h"
#include "decode/sampler.h"
#include "device/open_backend.h"
#include "io/file_map.h"
#include "weights/quantise.h"

namespace latte {
namespace {

constexpr std::chrono::milliseconds kQuietTime{500};  // of work that nobody needs to be told about
constexpr std::chrono::milliseconds kTimeBetweenWords{100};

bool is_wide(const Model& model) {
  const DType stored = model.weights.report.stored_dtype;
  return stored == DType::kF32 || stored == DType::kF64;
}

Status check_options(const EngineOptions& options) {
  if (options.context < 0)
    return fail(ErrorKind::kInvalidInput, "[open] context of {} tokens, expected 0 (the model's) or more",
                options.context);
  if (options.device == "reference" && options.isa != "auto") {
    return fail(ErrorKind::kInvalidInput,
                "[open] isa {} on device reference, which has none to choose from: leave it at auto or use device cpu",
                options.isa);
  }
  return {};
}

/// A model without a latent has no form to force, and pinned numerics choose it themselves.
Status check_path(const EngineOptions& options, const ModelConfig& config) {
  if (options.path == PathChoice::kAuto) return {};
  if (config.attention != AttentionKind::kMla) {
    return fail(
        ErrorKind::kUnsupported,
        "[open] --mla-path {} with family {}, whose attention is grouped-query and has one form: leave it at auto",
        word(options.path), config.family);
  }
  if (options.numerics == Numerics::kFast) return {};
  return fail(ErrorKind::kInvalidInput,
              "[open] --mla-path {} with --numerics pinned, which chooses the form by the rows' role: leave out one",
              word(options.path));
}

/// Weights that are stored quantised are what they are.
Status check_quantise(const EngineOptions& options, const ModelConfig& config) {
  if (options.quantize == Quantize::kNone || !config.quantised.has_value() ||
      config.quantised->word == word(options.quantize))
    return {};
  return fail(ErrorKind::kInvalidInput,
              "[open] --quantize {} with {}, whose weights are stored as {}: leave --quantize out, or open the model "
              "that they were made from",
              word(options.quantize), options.model, config.quantised->word);
}

/// Makes the matrices smaller where that is asked for and not done; where it takes its time, `progress` is told.
Status quantise_model(const EngineOptions& options, int threads, const LoadProgress& progress, Model& model) {
  const std::optional<QuantisePlan> plan = quantise_plan(options.quantize);
  if (!plan.has_value() || model.config.quantised.has_value()) return {};
  using Clock = std::chrono::steady_clock;
  Clock::time_point next = Clock::now() + kQuietTime;
  return quantise_weights(model.weights, *plan, threads, [&](std::int64_t done, std::int64_t all) {
    if (!progress || Clock::now() < next) return;
    next = Clock::now() + kTimeBetweenWords;
    progress(fmt::format("weights to {}, {} of {} MB", word(options.quantize), done / 1'000'000, all / 1'000'000));
  });
}

/// What rows of a model are cached as on this device.
Result<DType> cache_type(CacheType asked, DType compute, const BackendInfo& device) {
  const std::vector<DType>& offered = device.cache_dtypes;
  if (asked == CacheType::kAuto && device.activation == DType::kF64) return offered.front();
  const Result<DType> type = cached_type(asked, compute, "[open]");
  if (type.ok() && std::find(offered.begin(), offered.end(), *type) == offered.end()) {
    return fail(ErrorKind::kUnsupported, "[open] cache type {} is not on device {}: choose another", type_word(*type),
                device.name);
  }
  return type;
}

DType compute_type(ComputeType asked, const Model& model) {
  if (asked == ComputeType::kAuto) return is_wide(model) ? DType::kF32 : DType::kBf16;
  return asked == ComputeType::kF32 ? DType::kF32 : DType::kBf16;
}

/// Drafts are ids, so an id must be the same piece of text in both models.
Status check_vocabularies(const OpenModel& open, const Tokenizer* draft, const std::string& draft_directory) {
  const Tokenizer* target = open.tokenizer();
  if (target == nullptr || draft == nullptr) {
    if (open.model.config.vocab == open.draft->config.vocab) return {};
    return fail(ErrorKind::kInvalidInput, "[open] draft model {}: vocabulary of {} ids, expected the target's {}",
                draft_directory, open.draft->config.vocab, open.model.config.vocab);
  }
  const int size = std::max(target->vocab_size(), draft->vocab_size());
  for (std::int32_t id = 0; id < size; ++id) {
    if (target->contains(id) == draft->contains(id) && target->token_bytes(id) == draft->token_bytes(id)) continue;
    return fail(ErrorKind::kInvalidInput,
                "[open] draft model {}: token {} differs from the target's, expected the same vocabulary id by id: use "
                "a draft model of the same family",
                draft_directory, id);
  }
  if (open.draft->config.vocab >= target->vocab_size()) return {};
  return fail(ErrorKind::kInvalidInput, "[open] draft model {}: vocab_size {}, expected at least the tokenizer's {}",
              draft_directory, open.draft->config.vocab, target->vocab_size());
}

/// What generation_config.json suggests; a value that nothing can be sampled with is left out and said. Its penalty is
/// of every token of the text, and holds for greedy choices, too.
SamplingChoice suggested_sampling(const GenerationDefaults& defaults, int vocab, const std::string& directory,
                                  std::vector<std::string>& warnings) {
  SamplingChoice choice;
  const auto take = [&](const auto& suggested, auto SamplingChoice::*field) {
    if (!suggested.has_value()) return;
    SamplingChoice changed = choice;
    changed.*field = *suggested;
    Status sane = check_sampling({.temperature = changed.temperature,
                                  .top_k = changed.top_k,
                                  .top_p = changed.top_p,
                                  .min_p = changed.min_p,
                                  .seed = 0});
    if (sane.ok()) sane = check_logit_rules({.repeat_penalty = changed.repeat_penalty}, vocab);
    if (sane.ok()) {
      choice = changed;
    } else {
      warnings.push_back(
          fmt::format("{}/generation_config.json is not followed in one value: {}", directory, sane.error().message));
    }
  };
  take(defaults.repetition_penalty, &SamplingChoice::repeat_penalty);
  if (choice.repeat_penalty != 1) choice.repeat_last_n = -1;
  if (!defaults.do_sample.value_or(false)) return choice;
  choice.temperature = 1;
  take(defaults.temperature, &SamplingChoice::temperature);
  take(defaults.top_k, &SamplingChoice::top_k);
  take(defaults.top_p, &SamplingChoice::top_p);
  return choice;
}

/// The instruction set that the options ask for, by rates measured here where they let them choose.
FoundIsa take_isa(const EngineOptions& options, const LoadProgress& progress, OpenModel& open) {
  const bool large = open.model.weights.report.parameters >= kParametersWorthMeasuring;
  FoundIsa found = find_isa(this_machine(), {options.isa, options.device, options.threads},
                            isa_source(options.calibration, large), progress);
  open.info.warnings = std::move(found.warnings);
  return found;
}

/// Takes over the profile that the options and the model ask for. `seconds_spent`: of the time that measuring may take.
void take_profile(const EngineOptions& options, double seconds_spent, const LoadProgress& progress, OpenModel& open) {
  const ModelConfig& config = open.model.config;
  open.info.calibration = "none";
  if (!profile_may_decide(options, config, open.backend->info(), open.sequence.cache_dtype)) return;
  const DType weights = open.model.weights.layers.front().attention.w_uk.dtype;
  const bool measure = options.calibration == Calibration::kMeasure &&
                       calibration_can_matter(config.geometry, config.layers, open.sequence.context);
  MeasureLimits limits;
  limits.seconds -= seconds_spent;
  FoundProfile found =
      find_profile(*open.backend, config.geometry, {.cache = open.sequence.cache_dtype, .weights = weights}, measure,
                   progress, limits);
  open.profile = found.profile;
  if (open.profile.has_value()) open.sequence.profile = &*open.profile;
  open.info.calibration = found.source;
  open.info.warnings.insert(open.info.warnings.end(), found.warnings.begin(), found.warnings.end());
}

/// What products run in: bf16 where the device multiplies such pairs and the weights are stored so.
DType effective_compute(const BackendInfo& device, const Model& model) {
  if (device.activation == DType::kF64) return DType::kF64;
  return model.weights.report.stored_dtype == DType::kBf16 ? device.products : DType::kF32;
}

Status open_draft(const EngineOptions& options, DType compute, OpenModel& open) {
  Result<Model> draft = load_model(options.draft_model);
  if (!draft.ok()) return draft.error();
  open.draft.emplace(std::move(*draft));
  std::optional<Tokenizer> tokenizer;
  if (Tokenizer::find_file(options.draft_model).has_value()) {
    Result<Tokenizer> loaded = Tokenizer::load(options.draft_model);
    if (!loaded.ok()) return loaded.error();
    tokenizer = std::move(*loaded);
  }
  if (Status same = check_vocabularies(open, tokenizer.has_value() ? &*tokenizer : nullptr, options.draft_model);
      !same.ok())
    return same;
  const Result<DType> cache = cache_type(options.cache, compute, open.backend->info());
  if (!cache.ok()) return cache.error();
  open.draft_sequence = {.context = 0, .cache_dtype = *cache, .path = open.sequence.path, .profile = nullptr};
  open.info.has_draft_model = true;
  return {};
}

void fill_info(const EngineOptions& options, OpenModel& open) {
  const ModelConfig& config = open.model.config;
  const BackendInfo& device = open.backend->info();
  const LoadReport& report = open.model.weights.report;
  EngineInfo& info = open.info;
  info.family = config.family;
  info.device = device.name;
  info.isa = device.isa;
  info.threads = device.threads;
  info.compute = type_word(effective_compute(device, open.model));
  info.cache = type_word(open.sequence.cache_dtype);
  info.numerics = word(options.numerics);
  info.quantize = config.quantised.has_value() ? config.quantised->word : word(options.quantize);
  info.vocab = config.vocab;
  info.model_context = config.context_length;
  info.context = open.sequence.context;
  info.has_mtp = open.model.has_mtp();
  info.parameters = report.parameters;
  info.weight_bytes = report.bytes;
  info.cache_bytes_per_token = config.cache_row(open.sequence.cache_dtype).bytes() * config.layers;
  info.stop_ids.assign(config.eos_ids.begin(), config.eos_ids.end());
  const std::vector<std::string> assumed = taken_for_granted(config, info.model_directory + "/config.json");
  info.warnings.insert(info.warnings.end(), assumed.begin(), assumed.end());
  if (open.draft.has_value()) {
    const std::vector<std::string> of_draft =
        taken_for_granted(open.draft->config, options.draft_model + "/config.json");
    info.warnings.insert(info.warnings.end(), of_draft.begin(), of_draft.end());
  }
  if (config.eos_ids.empty()) {
    info.warnings.push_back(fmt::format(
        "{}: no eos_token_id in config.json and generation_config.json: no token ends a text, give -n or -r",
        info.model_directory));
  }
  if (open.tokenizer() != nullptr && config.bos_id.has_value() && !open.tokenizer()->adds_bos() &&
      !name_exists(info.model_directory + "/tokenizer_config.json")) {
    info.warnings.push_back(fmt::format(
        "{}: no tokenizer_config.json, which says whether a text begins with the BOS token {}: it begins without",
        info.model_directory, *config.bos_id));
  }
  info.sampling = suggested_sampling(config.generation, config.vocab, info.model_directory, info.warnings);
  if (options.compute != ComputeType::kAuto && info.compute != word(options.compute)) {
    info.warnings.push_back(
        fmt::format("--dtype {}: products run in {}, device {} ({}) has no other for weights stored as {}",
                    word(options.compute), info.compute, info.device, info.isa, dtype_name(report.stored_dtype)));
  }
  if (options.threads > 0 && device.name == "reference") {
    info.warnings.push_back(
        fmt::format("--threads {} is not used: device reference chooses for itself", options.threads));
  }
  if (report.mtp_incomplete) {
    info.warnings.push_back(
        fmt::format("an MTP layer is left out ({}): it drafts nothing; get the whole checkpoint", report.mtp_reason));
  }
  if (!report.layers_past.empty()) {
    info.warnings.push_back(fmt::format("{}: not all of its layers are used: {}; check config.json",
                                        info.model_directory, report.layers_past));
  }
  if (report.tied_head_unused) {
    info.warnings.push_back(
        fmt::format("{}: lm_head.weight is not used: config.json's tie_word_embeddings makes the embedding table the "
                    "head",
                    info.model_directory));
  }
  if (info.context > info.model_context) {
    info.warnings.push_back(fmt::format("--ctx-size {} is beyond the model's length {}: text past it may be poor",
                                        info.context, info.model_context));
  }
}

}  // namespace

std::optional<QuantisePlan> quantise_plan(Quantize choice) { return find_quantise_plan(word(choice)); }

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

Status check_ids(const Tokenizer& tokenizer, std::int64_t vocab) {
  if (tokenizer.vocab_size() <= vocab) return {};
  return fail(ErrorKind::kInvalidInput,
              "{}: largest id {}, expected below vocab_size {} of config.json: the files belong to different models",
              tokenizer.file(), tokenizer.vocab_size() - 1, vocab);
}

Result<std::shared_ptr<const TextCodecState>> open_text(const std::string& directory) {
  Result<Tokenizer> tokenizer = Tokenizer::load(directory);
  if (!tokenizer.ok()) return tokenizer.error();
  Result<ChatTemplate> found = ChatTemplate::load(directory);
  if (!found.ok() && found.error().kind != ErrorKind::kNotFound) return found.error();
  std::optional<ChatTemplate> chat_template;
  if (found.ok()) chat_template = std::move(*found);
  return std::make_shared<const TextCodecState>(
      TextCodecState{directory, std::move(*tokenizer), std::move(chat_template)});
}

Result<std::shared_ptr<OpenModel>> open_model(Model model, const EngineOptions& options, const LoadProgress& progress) {
  if (Status sane = check_options(options); !sane.ok()) return sane.error();
  const auto tell = [&](std::string_view stage) {
    if (progress) progress(stage);
  };
  const auto open = std::make_shared<OpenModel>(std::move(model));
  open->info.model_directory = options.model;

  if (Status fits = check_path(options, open->model.config); !fits.ok()) return fits.error();
  if (Status fits = check_quantise(options, open->model.config); !fits.ok()) return fits.error();

  const DType compute = compute_type(options.compute, open->model);
  const FoundIsa isa = take_isa(options, progress, *open);
  Result<std::unique_ptr<Backend>> backend =
      open_backend({.device = options.device, .isa = isa.isa, .threads = options.threads, .compute = compute});
  if (!backend.ok()) return backend.error();
  open->backend = std::move(*backend);
  const Result<DType> cache = cache_type(options.cache, compute, open->backend->info());
  if (!cache.ok()) return cache.error();
  open->sequence = {.context = options.context > 0 ? options.context : open->model.config.context_length,
                    .cache_dtype = *cache,
                    .path = options.numerics == Numerics::kPinned ? MlaPath::kPinned : path_of(options.path),
                    .profile = nullptr};

  if (Status made = quantise_model(options, open->backend->info().threads, progress, open->model); !made.ok())
    return made.error();

  tell("tokenizer");
  if (Tokenizer::find_file(options.model).has_value()) {
    Result<std::shared_ptr<const TextCodecState>> text = open_text(options.model);
    if (!text.ok()) return text.error();
    open->text_state = std::move(*text);
  }
  if (open->tokenizer() != nullptr) {
    if (Status fit = check_ids(*open->tokenizer(), open->model.config.vocab); !fit.ok()) return fit.error();
  }
  if (!options.draft_model.empty()) {
    tell("draft model");
    if (Status opened = open_draft(options, compute, *open); !opened.ok()) return opened.error();
  }
  take_profile(options, isa.seconds, progress, *open);
  fill_info(options, *open);
  return open;
}

Result<std::shared_ptr<OpenModel>> open_model(const EngineOptions& options, const LoadProgress& progress) {
  if (Status sane = check_options(options); !sane.ok()) return sane.error();
  if (progress) progress("weights");
  Result<Model> model =
      load_model(options.model, options.quantize == Quantize::kNone ? LoadFor::kCompute : LoadFor::kQuantising);
  if (!model.ok()) return model.error();
  return open_model(std::move(*model), options, progress);
}

}  // namespace latte
