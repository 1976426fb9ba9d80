#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "commands.h"
#include "latte/session.h"
#include "npy_file.h"
#include "open_engine.h"
#include "outcome.h"
#include "token_ids.h"

namespace latte::cli {
namespace {

// A file that receives one stream of logits; nothing when no path was given.
struct LogitsFile {
  std::optional<NpyFile> file;

  Status open(const std::optional<std::string>& path, std::int64_t rows, std::int64_t vocab) {
    if (!path.has_value()) return {};
    Result<NpyFile> created = NpyFile::create(*path, rows, vocab);
    if (!created.ok()) return created.error();
    file.emplace(std::move(*created));
    return {};
  }
  LogitsSink sink() {
    if (!file.has_value()) return {};
    return [this](int, std::span<const float> logits) { return file->append(logits); };
  }
  Status close() { return file.has_value() ? file->close() : Status{}; }
};

}  // namespace

int run_logits(const Arguments& arguments) {
  for (const char* needed : {"--model", "--ids", "--output"}) {
    if (!arguments.has(needed))
      return misused(fmt::format("no {}, expected latte logits -m DIR --ids LIST|@FILE -o out.npy", needed));
  }
  if (arguments.text("--mtp") == arguments.text("--output"))
    return misused(
        fmt::format("--output and --mtp {}: the same file, expected one for each", *arguments.text("--mtp")));
  const Result<StepRole> role = parse_step_role(arguments.text_or("--role", "auto"));
  if (!role.ok()) return misused(role.error());
  LogitsOptions options{.steps = {}, .redo = static_cast<int>(arguments.integer("--redo").value_or(0)), .role = *role};
  if (const auto list = arguments.text("--steps")) {
    Result<std::vector<int>> steps = parse_steps(*list);
    if (!steps.ok()) return misused(steps.error());
    options.steps = std::move(*steps);
  }
  const Result<std::vector<std::int32_t>> ids = parse_token_ids(*arguments.text("--ids"));
  if (!ids.ok()) return ids_refused(*arguments.text("--ids"), ids.error());
  const std::int64_t rows = static_cast<std::int64_t>(ids->size());
  const std::int64_t planned = std::accumulate(options.steps.begin(), options.steps.end(), std::int64_t{0});
  if (!options.steps.empty() && planned != rows) {
    return misused(fmt::format("--steps add up to {} rows, expected the {} ids", planned, rows));
  }
  const bool one_step = options.steps.empty();
  const auto longest = one_step ? rows : *std::max_element(options.steps.begin(), options.steps.end());
  if (options.redo >= longest)
    warn(fmt::format("--redo {} is not used: no step has more rows, the longest has {}", options.redo, longest));

  ProgressLine progress(arguments);
  const Result<Engine> engine = open_engine(arguments, progress);
  if (!engine.ok()) return failed(engine.error());
  Result<Session> session = Session::open(*engine, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt});
  if (!session.ok()) return failed(session.error());
  if (arguments.has("--mtp") && !engine->info().has_mtp) {
    return failed(
        {ErrorKind::kUnsupported, fmt::format("--mtp: {} has no MTP layer, expected one: latte inspect says why",
                                              engine->info().model_directory)});
  }
  const std::int64_t vocab = engine->info().vocab;
  LogitsFile main, mtp;
  if (Status opened = main.open(arguments.text("--output"), rows, vocab); !opened.ok()) return failed(opened.error());
  if (Status opened = mtp.open(arguments.text("--mtp"), rows - 1, vocab); !opened.ok()) return failed(opened.error());

  progress.show(fmt::format("evaluating {} tokens", rows));
  const Status done = session->logits(*ids, options, main.sink(), mtp.sink());
  progress.clear();
  if (!done.ok()) return failed(done.error());
  if (Status closed = main.close(); !closed.ok()) return failed(closed.error());
  if (Status closed = mtp.close(); !closed.ok()) return failed(closed.error());
  return 0;
}

}  // namespace latte::cli
