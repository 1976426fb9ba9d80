#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench_report.h"
#include "commands.h"
#include "latte/bench.h"
#include "open_engine.h"
#include "outcome.h"
#include "progress_line.h"
#include "run_arguments.h"
#include "token_ids.h"

namespace latte::cli {
namespace {

struct ListOption {
  std::string_view name;
  std::string_view otherwise;  ///< empty: none
  std::vector<int>* list;
};

Result<std::vector<int>> list_of(const Arguments& arguments, const ListOption& option) {
  if (!arguments.has(option.name) && option.otherwise.empty()) return std::vector<int>{};
  Result<std::vector<int>> list = parse_bench_list(arguments.text_or(option.name, option.otherwise));
  if (!list.ok()) return Error{list.error().kind, fmt::format("{} {}", option.name, list.error().message)};
  return list;
}

/// What the command line says but for the text. Errors are usage errors.
Result<BenchRequest> bench_request(const Arguments& arguments) {
  const bool attention = arguments.flag("--attention");
  Result<EngineOptions> engine = engine_options(arguments);
  if (!engine.ok()) return engine.error();
  BenchRequest request;
  request.engine = std::move(*engine);
  request.config_file = arguments.text_or("--config", "");
  request.layers = static_cast<int>(arguments.integer("--layers").value_or(0));
  request.repetitions = static_cast<int>(arguments.integer("--repetitions").value_or(5));
  const ListOption lists[] = {{"--n-prompt", "512", &request.prompt_rows},
                              {"--n-gen", "128", &request.generated_rows},
                              {"--n-verify", attention ? "1,2,4,8" : "", &request.verify_rows},
                              {"--n-depth", attention ? "4096" : "0", &request.depths}};
  for (const ListOption& option : lists) {
    Result<std::vector<int>> numbers = list_of(arguments, option);
    if (!numbers.ok()) return numbers.error();
    *option.list = std::move(*numbers);
  }
  const auto too_wide = std::find_if(request.verify_rows.begin(), request.verify_rows.end(),
                                     [&](int rows) { return !attention && rows > kMostVerifyRows; });
  if (too_wide != request.verify_rows.end()) {
    return Error{ErrorKind::kInvalidInput,
                 fmt::format("--n-verify {}: a verify step has 1 to {} rows", *too_wide, kMostVerifyRows)};
  }
  if (arguments.flag("--spec")) {
    const Result<SessionOptions> speculation = session_options(arguments);
    if (!speculation.ok()) return speculation.error();
    request.speculation = *speculation;
  }
  return request;
}

/// What does not go together; empty: all does.
std::string misuse(const Arguments& arguments) {
  const bool config = arguments.has("--config"), attention = arguments.flag("--attention"),
             spec = arguments.flag("--spec");
  if (arguments.has("--model") == config) return "bench expects exactly one of -m DIR and --config config.json";
  if (config && !attention && !arguments.flag("--random-weights"))
    return "--config has no weights, expected --random-weights with it";
  if (!config && arguments.flag("--random-weights"))
    return "--random-weights makes those of a --config FILE, expected one instead of -m";
  if (!config && arguments.has("--layers"))
    return "--layers cuts the model of a --config FILE, expected one instead of -m";
  if (spec && (config || attention)) return "--spec drafts with a stored model, expected -m DIR and no --attention";
  if (spec && !arguments.has("--file")) return "--spec replays a text, expected -f FILE, - for standard input";
  if (attention && (arguments.has("--n-prompt") || arguments.has("--n-gen")))
    return "--attention measures new rows over cached ones, expected --n-verify and --n-depth alone";
  if (!spec) {
    for (const char* name : {"--spec-type", "--draft-model", "--num-draft-tokens"})
      if (arguments.has(name)) return fmt::format("{} is for rows with a drafter, expected --spec with it", name);
  }
  if (arguments.flag("--json") && arguments.text_or("--output-format", "json") != "json")
    return fmt::format("--json and -o {}: both say what to print, expected one of them",
                       arguments.text_or("--output-format", ""));
  return "";
}

}  // namespace

int run_bench(const Arguments& arguments) {
  if (const std::string wrong = misuse(arguments); !wrong.empty()) return misused(wrong);
  Result<BenchRequest> request = bench_request(arguments);
  if (!request.ok()) return misused(request.error());
  if (arguments.has("--file")) {
    Result<std::string> text = read_file(*arguments.text("--file"));
    if (!text.ok()) return failed(text.error());
    request->text = std::move(*text);
  }
  ProgressLine progress(arguments);
  const BenchProgress tell = [&](std::string_view stage) { progress.show(stage); };
  const Result<BenchReport> report =
      arguments.flag("--attention") ? measure_attention(*request, tell) : measure_steps(*request, tell);
  progress.clear();
  if (!report.ok()) return failed(report.error());
  for (const std::string& warning : report->warnings) warn(warning);
  if (report->busy)
    warn_busy(report->load_average, report->threads, "the times below are too long, and differ from run to run");
  return finish_with(
      bench_text(*report, arguments.flag("--json") ? "json" : arguments.text_or("--output-format", "md")));
}

}  // namespace latte::cli
