#include "latte/quantize.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "api/model_lookup.h"
#include "api/out_of_memory.h"
#include "base/fail.h"
#include "base/stopwatch.h"
#include "decode/open_model.h"
#include "io/file_map.h"
#include "io/new_folder.h"
#include "io/replace_file.h"
#include "model/config_file.h"
#include "weights/quantised_files.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

/// Files that belong to a model beside its weights and its config.json.
constexpr std::array kOtherFiles = {
    "generation_config.json",  "tokenizer.json",    "tokenizer.model", "tiktoken.model", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.json",      "merges.txt",     "chat_template.jinja",
    "chat_template.json",      "LICENSE",           "LICENSE.txt",     "LICENSE.md",     "NOTICE"};

Status refuse_quantised(const ModelConfig& config, std::string_view wanted, const std::string& directory) {
  if (!config.quantised.has_value()) return {};
  if (config.quantised->word == wanted) {
    return fail(ErrorKind::kInvalidInput, "{}: is {} already, expected a model of floats: open it as it is", directory,
                wanted);
  }
  return fail(ErrorKind::kInvalidInput,
              "{}: is quantised already, as {}, expected a model of floats: quantise the model that it was made from",
              directory, config.quantised->word);
}

Result<std::vector<std::string>> copy_other_files(const std::string& from, const NewFolder& folder) {
  std::vector<std::string> copied;
  for (const char* name : kOtherFiles) {
    const fs::path source = fs::path(from) / name;
    std::error_code ignored;
    if (!name_exists(source.string()) || fs::is_directory(source, ignored)) continue;
    if (Status done = folder.copy_in(source.string(), name); !done.ok()) return done.error();
    copied.emplace_back(name);
  }
  return copied;
}

/// The source's config.json with a word on what has become of its weights.
Status write_config(const Model& model, std::string_view word, const NewFolder& folder) {
  const std::string& source = model.weights.checkpoint.directory();
  Result<Json> config = read_json_file((fs::path(source) / "config.json").string());
  if (!config.ok()) return config.error();
  const Result<Checkpoint> written = Checkpoint::open(folder.temporary());
  if (!written.ok()) return written.error();
  (*config)["quantization_config"] = quantisation_json({
      .word = std::string(word),
      .storage = {.plan = {}, .source_dtype = model.weights.report.stored_dtype},
      .source_weights = weights_digest(model.weights.checkpoint).hex(),
      .weights = weights_digest(*written).hex(),
      .sizes = matrix_sizes(weight_spec(model.config)),
  });
  const std::string text = config->dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  Result<FileReplacement> file = FileReplacement::begin(folder.file("config.json"));
  if (!file.ok()) return file.error();
  if (Status done = file->write(std::as_bytes(std::span(text))); !done.ok()) return done;
  return file->commit();
}

QuantizeReport report_of(const Model& model, const QuantizeRequest& request, const QuantisedFiles& files) {
  QuantizeReport report;
  report.model = model.weights.checkpoint.directory();
  report.directory = request.directory;
  report.quantize = word(request.quantize);
  for (const auto& [type, counted] : files.by_type) {
    report.types.push_back({type, counted.tensors, counted.bytes_before, counted.bytes});
    report.bytes_before += counted.bytes_before;
    report.bytes += counted.bytes;
  }
  report.weight_files = files.files;
  for (const DroppedTensor& tensor : model.weights.report.dropped)
    report.left_out.push_back({tensor.name, tensor.reason});
  report.mtp = model.has_mtp();
  return report;
}

Result<QuantizeReport> quantize_directory(const QuantizeRequest& request, const std::string& directory,
                                          const QuantizeProgress& progress) {
  const Stopwatch clock;
  const std::optional<QuantisePlan> plan = quantise_plan(request.quantize);
  if (!plan.has_value()) {
    return fail(ErrorKind::kInvalidInput, "[quantize] quantize {}, expected {}", word(request.quantize),
                quantise_words());
  }
  Result<ModelConfig> config = load_config(directory);
  if (!config.ok()) return config.error();
  if (Status floats = refuse_quantised(*config, word(request.quantize), directory); !floats.ok()) return floats.error();
  Result<NewFolder> folder = NewFolder::begin(request.directory);  // before the weights are read: it may be refused
  if (!folder.ok()) return folder.error();
  Result<Model> model = load_model(directory, std::move(*config), LoadFor::kQuantising);
  if (!model.ok()) return model.error();
  const Result<QuantisedFiles> files = write_quantised_files(
      model->weights, *plan, *folder,
      {.threads = request.threads, .most_shard_bytes = request.most_shard_bytes, .on_progress = progress});
  if (!files.ok()) return files.error();
  Result<std::vector<std::string>> copied = copy_other_files(directory, *folder);
  if (!copied.ok()) return copied.error();
  if (Status done = write_config(*model, word(request.quantize), *folder); !done.ok()) return done.error();
  if (Status done = folder->commit(); !done.ok()) return done.error();
  QuantizeReport report = report_of(*model, request, *files);
  report.copied = std::move(*copied);
  report.seconds = clock.seconds();
  return report;
}

}  // namespace

Result<QuantizeReport> quantize_model(const QuantizeRequest& request, const QuantizeProgress& progress) {
  return reporting_no_memory([&]() -> Result<QuantizeReport> {
    const Result<std::string> directory = find_model(request.model);
    if (!directory.ok()) return directory.error();
    return quantize_directory(request, *directory, progress);
  });
}

}  // namespace latte
