#include "api/bench_speculation.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "api/bench_paths.h"
#include "api/bench_timing.h"
#include "base/fail.h"
#include "decode/forced_text.h"
#include "decode/session.h"

namespace latte {
namespace {

constexpr int kTokensBefore = 8;  // generated before the clock starts, so that the drafter is under way

/// One stretch of the text: `prompt` tokens to read, then `count` to generate.
struct Stretch {
  std::span<const TokenId> text;
  int prompt = 1;
  int count = 1;
};

/// One way of decoding, with a session of its own.
class Arm {
 public:
  Arm(BenchModel& model, std::unique_ptr<SessionState> state, const char* name)
      : model_(model), state_(std::move(state)), name_(name) {}

  Status replay(const Stretch& stretch, bool timed);
  Result<BenchRow> finish(BenchRow row, double roof) const;
  const char* name() const { return name_; }

 private:
  Result<DecodeStats> advance(const Stretch& stretch, std::vector<TokenId>& tokens, int count);
  Status start_over();

  BenchModel& model_;
  std::unique_ptr<SessionState> state_;
  const char* name_;
  std::vector<double> seconds_;
  PathCounts paths_;
  std::int64_t bytes_ = 0, steps_ = 0, tokens_ = 0, drafted_ = 0, accepted_ = 0;
};

Status Arm::start_over() {
  if (Status back = state_->sequence.rewind_to(0); !back.ok()) return back;
  return state_->drafter == nullptr ? Status{} : state_->drafter->rewind_to(0);
}

Result<DecodeStats> Arm::advance(const Stretch& stretch, std::vector<TokenId>& tokens, int count) {
  const Sampler sampler({}, state_->sequence.vocab());
  ForcedTextTimeline target(state_->sequence, stretch.text);
  const Result<Generation> done = generate(
      {.target = target,
       .drafter = state_->drafter.get(),
       .sampler = sampler,
       .tokens = tokens,
       .options = {.max_tokens = count,
                   .depth = state_->depth,
                   .prompt_step_rows = model_.open->pinned() ? kPinnedStepRows : GenerateOptions{}.prompt_step_rows,
                   .first_generated = stretch.prompt}});
  if (!done.ok()) return done.error();
  return done->stats;
}

Status Arm::replay(const Stretch& stretch, bool timed) {
  if (Status begun = start_over(); !begun.ok()) return begun;
  std::vector<TokenId> tokens(stretch.text.begin(), stretch.text.begin() + stretch.prompt);
  if (const auto before = advance(stretch, tokens, kTokensBefore); !before.ok()) return before.error();
  if (!timed) return {};
  const PathCounts paths = path_counts(state_->sequence.paths());
  model_.counter->reset();
  model_.counter->count(true);
  const Result<DecodeStats> stats = advance(stretch, tokens, stretch.count);
  model_.counter->count(false);
  if (!stats.ok()) return stats.error();
  seconds_.push_back(stats->prompt_seconds + stats->generate_seconds);
  paths_ = paths_ + (path_counts(state_->sequence.paths()) - paths);
  bytes_ += model_.counter->bytes();
  steps_ += stats->rounds + 1;  // the row that waits from before gives the first token
  tokens_ += stretch.count;
  drafted_ += stats->drafted;
  accepted_ += stats->accepted;
  return {};
}

Result<BenchRow> Arm::finish(BenchRow row, double roof) const {
  const PathCounts claimed =
      claimed_paths(model_.open->model.config, model_.open->sequence.rule(), Role::kGenerated, {BenchStep{}});
  if (Status true_to_name = check_forms(row.test, claimed, paths_); !true_to_name.ok()) return true_to_name.error();
  row.arm = name_;
  row.paths = paths_;
  row.bytes_moved = bytes_ / static_cast<std::int64_t>(seconds_.size());
  if (state_->drafter != nullptr) {
    row.acceptance = drafted_ == 0 ? 0 : static_cast<double>(accepted_) / static_cast<double>(drafted_);
    row.emitted_per_round = static_cast<double>(tokens_) / static_cast<double>(steps_);
  }
  summarise(seconds_, roof, row);
  return row;
}

Result<Arm> open_arm(BenchModel& model, const SessionOptions& options) {
  Result<std::unique_ptr<SessionState>> state = SessionState::open(model.open, options);
  if (!state.ok()) return state.error();
  const char* name = (*state)->spec == SpecType::kNone ? "plain" : word((*state)->spec).data();
  return Arm(model, std::move(*state), name);
}

Status measure_pair(const BenchRequest& request, BenchModel& model, std::span<const TokenId> text, Stretch stretch,
                    const BenchProgress& progress, BenchRow row, BenchReport& report) {
  const std::size_t length = static_cast<std::size_t>(stretch.prompt + stretch.count + kReplayMargin);
  if (text.size() < length) {
    return fail(ErrorKind::kInvalidInput,
                "[bench] {} with speculation: the text has {} tokens, expected at least {}: give a longer file",
                row.test, text.size(), length);
  }
  Result<Arm> plain = open_arm(model, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt});
  if (!plain.ok()) return plain.error();
  Result<Arm> drafting = open_arm(model, *request.speculation);
  if (!drafting.ok()) return drafting.error();
  for (int round = -1; round < request.repetitions; ++round) {
    const auto place = static_cast<std::size_t>(std::max(round, 0));
    const std::size_t first = (text.size() - length) * place / static_cast<std::size_t>(request.repetitions);
    stretch.text = text.subspan(first, length);
    for (const int turn : {0, 1}) {
      Arm& arm = (turn + std::max(round, 0)) % 2 == 0 ? *plain : *drafting;
      if (progress) progress(fmt::format("{} ({}): {} of {}", row.test, arm.name(), round + 1, request.repetitions));
      if (Status done = arm.replay(stretch, round >= 0); !done.ok()) return done;
    }
  }
  for (const Arm* arm : {&*plain, &*drafting}) {
    Result<BenchRow> done = arm->finish(row, report.read_gbytes_per_second);
    if (!done.ok()) return done.error();
    report.rows.push_back(std::move(*done));
  }
  return {};
}

}  // namespace

Status measure_speculation(const BenchRequest& request, BenchModel& model, const BenchProgress& progress,
                           BenchReport& report) {
  const Result<std::vector<TokenId>> text = bench_ids(*model.open, request, 1);
  if (!text.ok()) return text.error();
  for (const int depth : request.depths) {
    for (const int rows : request.generated_rows) {
      BenchRow row;
      row.test = test_name("tg", rows, depth);
      row.rows = rows;
      row.depth = depth;
      row.cache = depth == 0 ? "empty" : "prompt";
      row.kv_bytes_per_token = model.open->info.cache_bytes_per_token;
      const Stretch stretch{.text = {}, .prompt = std::max(depth, 1), .count = rows};
      if (Status done = measure_pair(request, model, *text, stretch, progress, row, report); !done.ok()) return done;
    }
  }
  report.notes.push_back(
      "plain and drafting rows replay the given text: its own tokens are the model's choices, stretches of it take "
      "turns");
  return {};
}

}  // namespace latte
