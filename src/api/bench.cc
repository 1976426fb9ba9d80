#include "latte/bench.h"

#include <algorithm>
#include <set>
#include <utility>

#include "api/bench_model.h"
#include "api/bench_paths.h"
#include "api/bench_speculation.h"
#include "api/bench_timing.h"
#include "api/machine.h"
#include "api/out_of_memory.h"
#include "api/read_bandwidth.h"
#include "api/synthetic_cache.h"
#include "base/fail.h"

namespace latte {
namespace {

constexpr int kPromptStepRows = 512;
constexpr double kVisitSeconds = 0.02;  // a single short step is repeated for about so long in each visit
constexpr int kMostStepsOfAVisit = 16;

enum class Kind { kPrompt, kGenerate, kVerify };

/// One row of the table in the making.
struct Test {
  Kind kind = Kind::kPrompt;
  std::vector<BenchStep> steps;
  PathCounts claimed;  ///< by one sample
  bool shown = true;   ///< false: measured for the sake of second_row_cost
  int samples_of_a_visit = 1;
  std::vector<double> seconds;
  BenchRow row;

  Role role() const { return kind == Kind::kPrompt ? Role::kPrompt : Role::kGenerated; }
};

/// All tests over one sequence, whose rows up to the depth stay while the tests come and go.
class StepBench {
 public:
  StepBench(const BenchRequest& request, BenchModel& model, ReadBandwidth& reading, const BenchProgress& progress,
            std::vector<TokenId> ids)
      : request_(request),
        model_(model),
        reading_(reading),
        progress_(progress),
        ids_(std::move(ids)),
        sequence_(model.open->model, *model.open->backend, model.open->sequence) {}

  Status run_depth(int depth);
  std::vector<Test>& tests() { return tests_; }
  std::vector<double>& roofs() { return roofs_; }

 private:
  std::vector<Test> tests_of(int depth) const;
  Test make(Kind kind, int rows, int depth) const;
  Status fill(int depth);
  Status warm_up(Test& test);
  Status visit(Test& test);
  Result<double> sample(const Test& test);
  void tell(const std::string& what) const {
    if (progress_) progress_(what);
  }

  const BenchRequest& request_;
  BenchModel& model_;
  ReadBandwidth& reading_;
  const BenchProgress& progress_;
  std::vector<TokenId> ids_;
  ModelSequence sequence_;
  int filled_ = 0;
  std::vector<Test> tests_;
  std::vector<double> roofs_;
};

int prompt_step_rows(const OpenModel& open) { return open.pinned() ? kPinnedStepRows : kPromptStepRows; }

Test StepBench::make(Kind kind, int rows, int depth) const {
  Test test;
  test.kind = kind;
  const int most = kind == Kind::kPrompt ? prompt_step_rows(*model_.open) : kind == Kind::kGenerate ? 1 : rows;
  for (int done = 0; done < rows; done += most) test.steps.push_back({std::min(most, rows - done), depth + done});
  test.claimed = claimed_paths(model_.open->model.config, model_.open->sequence.rule(), test.role(), test.steps);
  const char* prefix = kind == Kind::kPrompt ? "pp" : kind == Kind::kGenerate ? "tg" : "v";
  test.row.test = test_name(prefix, rows, depth);
  test.row.rows = rows;
  test.row.depth = depth;
  test.row.arm = forms_of(test.claimed);
  test.row.cache = depth == 0 ? "empty" : model_.random ? "synthetic" : "prompt";
  test.row.kv_bytes_per_token = model_.open->info.cache_bytes_per_token;
  return test;
}

/// Beside what is asked for, steps of one and of two rows where any verify step is measured.
std::vector<Test> StepBench::tests_of(int depth) const {
  std::vector<Test> tests;
  for (const int rows : request_.prompt_rows) tests.push_back(make(Kind::kPrompt, rows, depth));
  if (!request_.speculation.has_value()) {  // else they are the plain ones of the speculating pairs
    for (const int rows : request_.generated_rows) tests.push_back(make(Kind::kGenerate, rows, depth));
  }
  std::vector<int> verify = request_.verify_rows;
  const std::size_t asked = verify.size();
  for (const int rows : {1, 2}) {
    if (asked > 0 && std::find(verify.begin(), verify.end(), rows) == verify.end()) verify.push_back(rows);
  }
  for (std::size_t i = 0; i < verify.size(); ++i) {
    tests.push_back(make(Kind::kVerify, verify[i], depth));
    tests.back().shown = i < asked;
  }
  return tests;
}

/// Rows up to the depth: of a prompt, or random ones where the weights are.
Status StepBench::fill(int depth) {
  if (depth > filled_) tell(fmt::format("filling the cache to {} rows", depth));
  if (Status back = sequence_.rewind_to(filled_); !back.ok()) return back;
  filled_ = depth;
  if (model_.random) {
    return fill_with_random_rows(*model_.open->backend, sequence_.cache(), depth, request_.seed);
  }
  while (sequence_.length() < depth) {
    const int rows = std::min(prompt_step_rows(*model_.open), depth - sequence_.length());
    const auto ids =
        std::span(ids_).subspan(static_cast<std::size_t>(sequence_.length()), static_cast<std::size_t>(rows));
    if (const auto step = sequence_.step(ids, Role::kPrompt, LogitsWanted::kNone); !step.ok()) return step.error();
  }
  return {};
}

Result<double> StepBench::sample(const Test& test) {
  if (Status back = sequence_.rewind_to(test.row.depth); !back.ok()) return back.error();
  return seconds_of([&]() -> Status {
    for (const BenchStep& step : test.steps) {
      const bool last = &step == &test.steps.back();
      const LogitsWanted wanted = test.kind == Kind::kVerify             ? LogitsWanted::kAll
                                  : test.kind == Kind::kGenerate || last ? LogitsWanted::kLast
                                                                         : LogitsWanted::kNone;
      const auto ids =
          std::span(ids_).subspan(static_cast<std::size_t>(step.rows_before), static_cast<std::size_t>(step.rows));
      if (const auto done = sequence_.step(ids, test.role(), wanted); !done.ok()) return done.error();
    }
    return {};
  });
}

/// An untimed sample, in which bytes are counted.
Status StepBench::warm_up(Test& test) {
  tell(fmt::format("{}: warming up", test.row.test));
  model_.counter->reset();
  model_.counter->count(true);
  const Result<double> seconds = sample(test);
  model_.counter->count(false);
  if (!seconds.ok()) return seconds.error();
  test.row.bytes_moved = model_.counter->bytes();
  if (test.kind == Kind::kVerify) {
    test.samples_of_a_visit =
        std::clamp(static_cast<int>(kVisitSeconds / std::max(*seconds, 1e-6)), 1, kMostStepsOfAVisit);
  }
  return {};
}

/// The roof is measured beside every visit, so that what else the machine does meets both.
Status StepBench::visit(Test& test) {
  roofs_.push_back(reading_.pass());
  const PathCounts before = path_counts(sequence_.paths());
  for (int i = 0; i < test.samples_of_a_visit; ++i) {
    const Result<double> seconds = sample(test);
    if (!seconds.ok()) return seconds.error();
    test.seconds.push_back(*seconds);
  }
  test.row.paths = test.row.paths + (path_counts(sequence_.paths()) - before);
  return {};
}

Status StepBench::run_depth(int depth) {
  if (Status filled = fill(depth); !filled.ok()) return filled;
  std::vector<Test> tests = tests_of(depth);
  for (Test& test : tests) {
    if (Status warm = warm_up(test); !warm.ok()) return warm;
  }
  for (int round = 0; round < request_.repetitions; ++round) {
    for (std::size_t i = 0; i < tests.size(); ++i) {
      Test& test = tests[round % 2 == 0 ? i : tests.size() - 1 - i];
      tell(fmt::format("{}: {} of {}", test.row.test, round + 1, request_.repetitions));
      if (Status done = visit(test); !done.ok()) return done;
    }
  }
  for (Test& test : tests) {
    const auto samples = static_cast<std::int64_t>(test.seconds.size());
    if (Status true_to_name = check_paths(test.row.test, test.claimed, samples, test.row.paths); !true_to_name.ok())
      return true_to_name;
    tests_.push_back(std::move(test));
  }
  return {};
}

/// What a second row adds to a step, on the verify rows of its depth.
void add_second_row_costs(std::vector<Test>& tests) {
  const auto seconds_at = [&](int rows, int depth) {
    for (const Test& test : tests) {
      if (test.kind == Kind::kVerify && test.row.rows == rows && test.row.depth == depth) return median(test.seconds);
    }
    return 0.0;
  };
  for (Test& test : tests) {
    if (test.kind != Kind::kVerify) continue;
    const double one = seconds_at(1, test.row.depth);
    if (one > 0) test.row.second_row_cost = (seconds_at(2, test.row.depth) - one) / one;
  }
}

Status check_request(const BenchRequest& request) {
  if (request.engine.model.empty() == request.config_file.empty())
    return fail(ErrorKind::kInvalidInput,
                "[bench] expected either a model or a config file to make random weights for");
  if (request.layers != 0 && request.config_file.empty())
    return fail(ErrorKind::kInvalidInput,
                "[bench] {} layers of a stored model, expected all: layers belong to a config file", request.layers);
  if (request.repetitions < 1)
    return fail(ErrorKind::kInvalidInput, "[bench] {} repetitions, expected at least 1", request.repetitions);
  for (const int rows : request.verify_rows) {
    if (rows > kMostVerifyRows)
      return fail(ErrorKind::kInvalidInput, "[bench] a verify step of {} rows, expected 1 to {}", rows,
                  kMostVerifyRows);
  }
  if (request.depths.empty() ||
      (request.prompt_rows.empty() && request.generated_rows.empty() && request.verify_rows.empty())) {
    return fail(ErrorKind::kInvalidInput, "[bench] no test is left, expected rows of a prompt, generated or verified");
  }
  if (!request.speculation.has_value()) return {};
  if (request.generated_rows.empty())
    return fail(ErrorKind::kInvalidInput, "[bench] speculation without generated rows, expected some");
  if (!request.config_file.empty() || request.text.empty())
    return fail(ErrorKind::kInvalidInput, "[bench] speculation needs a stored model and a text to replay: give both");
  return {};
}

/// Sorted, each once, without zeros when `positive`.
std::vector<int> tidy(const std::vector<int>& numbers, bool positive) {
  std::set<int> all(numbers.begin(), numbers.end());
  if (positive) all.erase(0);
  return {all.begin(), all.end()};
}

int largest(const std::vector<int>& numbers) {
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

void add_notes(const BenchRequest& request, const BenchModel& model, BenchReport& report) {
  if (model.random && largest(request.depths) > 0)
    report.notes.push_back("cache: synthetic: up to its depth a test finds random normed rows, not those of a prompt");
  if (request.text.empty()) report.notes.push_back("prompts are random ids");
  if (model.random && model.open->model.config.moe.experts > 0)
    report.notes.push_back("random weights choose experts more evenly than trained ones may");
}

Result<BenchReport> measure_tests(BenchRequest request, const BenchProgress& progress) {
  const double load = load_average();
  request.prompt_rows = tidy(request.prompt_rows, true);
  request.generated_rows = tidy(request.generated_rows, true);
  request.verify_rows = tidy(request.verify_rows, true);
  request.depths = tidy(request.depths, false);
  if (Status sane = check_request(request); !sane.ok()) return sane.error();
  const int most_rows =
      std::max({largest(request.prompt_rows), largest(request.generated_rows), largest(request.verify_rows), 2});
  const int context = largest(request.depths) + most_rows + (request.speculation.has_value() ? kReplayMargin : 0);
  Result<BenchModel> model = open_bench_model(request, context, progress);
  if (!model.ok()) return model.error();
  Result<std::vector<TokenId>> ids = bench_ids(*model->open, request, static_cast<std::size_t>(context));
  if (!ids.ok()) return ids.error();
  BenchReport report = begin_report(*model);
  report.load_average = load;
  report.busy = is_busy(load, report.threads);
  const std::size_t buffer = read_buffer_bytes(report.weight_bytes);
  Result<ReadBandwidth> reading = ReadBandwidth::open(*model->open->backend, buffer);
  if (!reading.ok()) return reading.error();

  StepBench bench(request, *model, *reading, progress, std::move(*ids));
  for (const int depth : request.depths) {
    if (Status done = bench.run_depth(depth); !done.ok()) return done.error();
  }
  for (int pass = 0; pass < request.repetitions; ++pass) bench.roofs().push_back(reading->pass());
  report.read_buffer_bytes = static_cast<std::int64_t>(buffer);
  report.read_gbytes_per_second = median(bench.roofs());
  add_second_row_costs(bench.tests());
  for (Test& test : bench.tests()) {
    if (!test.shown) continue;
    summarise(test.seconds, report.read_gbytes_per_second, test.row);
    report.rows.push_back(std::move(test.row));
  }
  if (request.speculation.has_value()) {
    if (Status done = measure_speculation(request, *model, progress, report); !done.ok()) return done.error();
  }
  add_notes(request, *model, report);
  return report;
}

}  // namespace

Result<BenchReport> measure_steps(const BenchRequest& request, const BenchProgress& progress) {
  return reporting_no_memory([&] { return measure_tests(request, progress); });
}

}  // namespace latte
