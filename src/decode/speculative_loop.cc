#include "decode/speculative_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/contract.h"
#include "base/fail.h"

namespace latte {
namespace {

class SpeculativeLoop {
 public:
  explicit SpeculativeLoop(const GenerateRequest& request)
      : request_(request), chooser_(request.sampler, request.rules, request.tokens) {
    const int asked = options().depth >= 0 ? options().depth : drafter() != nullptr ? drafter()->default_depth() : 0;
    stats_.depth = drafter() == nullptr ? 0 : std::min(asked, kMaxDrafts);
    round_depth_ = stats_.depth;  // a prompt is read for drafts to come
    const int unlimited = std::numeric_limits<int>::max();
    max_tokens_ = options().max_tokens < 0 ? unlimited : options().max_tokens;
  }

  Result<Generation> run() {
    if (Status checked = check_request(); !checked.ok()) return checked.error();
    if (Status resumed = resume(); !resumed.ok()) return resumed.error();
    if (max_tokens_ == 0) finish_ = FinishReason::kLength;
    if (Status read = read_prompt(); !read.ok()) return read.error();
    while (!finish_) {
      const TimeInto whole(stats_.generate_seconds);
      if (Status round_done = round(); !round_done.ok()) return round_done.error();
    }
    return Generation{.finish_reason = *finish_, .stats = stats_};
  }

 private:
  const GenerateOptions& options() const { return request_.options; }
  Timeline& target() const { return request_.target; }
  Drafter* drafter() const { return request_.drafter; }
  DepthController* control() const { return stats_.depth == 0 ? nullptr : options().control; }
  std::vector<TokenId>& tokens() const { return request_.tokens; }
  int token_count() const { return static_cast<int>(tokens().size()); }

  Status check_request() const {
    if (tokens().empty()) {
      return fail(ErrorKind::kInvalidInput,
                  "[generate] the prompt has 0 tokens: expected at least one, give text or a BOS token");
    }
    if (tokens().size() > static_cast<std::size_t>(target().context())) {
      return fail(
          ErrorKind::kInvalidInput,
          "[generate] the prompt has {} tokens: expected at most {}, the context; shorten it or open a larger context",
          tokens().size(), target().context());
    }
    for (std::size_t i = static_cast<std::size_t>(std::min(target().length(), token_count())); i < tokens().size();
         ++i) {
      if (tokens()[i] < 0 || tokens()[i] >= target().vocab()) {
        return fail(ErrorKind::kInvalidInput,
                    "[generate] prompt token {} is id {}: expected 0 to {}, the model's vocabulary", i, tokens()[i],
                    target().vocab() - 1);
      }
    }
    expects(options().prompt_step_rows > 0, "a prompt step has rows");
    return {};
  }

  /// Leaves the last token unfed at least: its row gives the first logits.
  Status resume() {
    if (Status settled = settle_at(std::min(target().length(), token_count() - 1)); !settled.ok()) return settled;
    stats_.prompt_tokens = token_count();
    stats_.cached_tokens = target().length();
    return {};
  }

  /// Feeds what the cache lacks and emits the first token.
  Status read_prompt() {
    const int prompt = token_count();
    while (!finish_) {
      const TimeInto time(stats_.prompt_seconds);
      const int first = target().length();
      const int count = prompt_rows(first, prompt);
      const bool last = first + count == prompt;
      const std::span<const TokenId> ids{tokens().data() + first, static_cast<std::size_t>(count)};
      const Role role = first >= first_generated() ? Role::kGenerated : Role::kPrompt;
      const Result<StepResult> step = target().step(ids, role, last ? LogitsWanted::kLast : LogitsWanted::kNone);
      if (!step.ok()) return abandon(step.error(), first);
      if (Status seen = tell_drafter(first, step->hidden); !seen.ok())
        return abandon(seen.error(), std::min(first + count, prompt - 1));
      if (last) return emit_first(*step);
      if (request_.on_prompt_rows) heed(request_.on_prompt_rows(first + count, prompt));
    }
    return {};
  }

  int first_generated() const {
    return options().first_generated < 0 ? token_count() : std::max(1, options().first_generated);
  }

  /// Rows of the next prompt step: prompt rows and rows generated earlier do not share one.
  int prompt_rows(int first, int prompt) const {
    if (first >= first_generated()) return std::min(prompt - first, kMaxDecodeRows);
    return std::min({prompt - first, options().prompt_step_rows, first_generated() - first});
  }

  Status emit_first(const StepResult& step) {
    const int rows = target().length();
    block_.assign(1, tokens().back());
    Result<int> emitted = judge(step.logits);
    if (!emitted.ok()) return abandon(emitted.error(), rows - 1);
    stats_.choose_seconds = stats_.emit_seconds = 0;  // the first token's share is the prompt's
    return {};
  }

  /// Draft, verify, accept, emit, rewind.
  Status round() {
    const int rows = target().length();
    expects(rows == token_count() - 1, "the target holds every token but the last between rounds");
    if (rows == target().context()) {
      finish_ = FinishReason::kLength;
      return {};
    }
    block_.assign(1, tokens().back());
    const DecodeStats before = stats_;
    round_depth_ = control() == nullptr ? stats_.depth : control()->choose(rows);
    if (Status drafted = propose(draft_room(rows)); !drafted.ok()) return abandon(drafted.error(), rows);

    Result<StepResult> verified = verify();
    if (!verified.ok() && verified.error().kind == ErrorKind::kNumeric && block_.size() > 1) {
      // The broken row may be one of a draft that plain decoding would never feed: the current token decides alone.
      block_.erase(block_.begin() + 1, block_.end());
      if (Status rewound = rewind_target(rows); !rewound.ok()) return abandon(rewound.error(), rows);
      verified = verify();
    }
    if (!verified.ok()) return abandon(verified.error(), rows);
    const Result<int> emitted = judge(verified->logits);
    if (!emitted.ok()) return abandon(emitted.error(), rows);
    stats_.count_round(round_depth_, static_cast<int>(block_.size()) - 1, static_cast<int>(yielded_.size()), *emitted);

    {
      const TimeInto time(stats_.settle_seconds);
      if (Status rewound = rewind_target(rows + *emitted); !rewound.ok()) return abandon(rewound.error(), rows);
      if (Status seen = tell_drafter(rows, verified->hidden.rows_from(0, *emitted)); !seen.ok()) {
        return abandon(seen.error(), rows + *emitted);
      }
    }
    tell_control(before, rows);
    return {};
  }

  void tell_control(const DecodeStats& before, int rows) {
    if (control() == nullptr) return;
    const auto drafted = static_cast<int>(stats_.drafted - before.drafted);
    const auto accepted = static_cast<int>(stats_.accepted - before.accepted);
    control()->record({.drafted = drafted,
                       .tested = std::min(drafted, accepted + 1),
                       .accepted = accepted,
                       .seconds = stats_.seconds_of_rounds() - before.seconds_of_rounds(),
                       .cached_rows = rows});
  }

  /// Drafts that can still be of use: each is a row of the verify step, and the step emits one token more than it
  /// accepts.
  int draft_room(int rows) const {
    return std::min({round_depth_, max_tokens_ - stats_.generated_tokens - 1, target().context() - rows - 1});
  }

  Status propose(int max_drafts) {
    if (max_drafts <= 0) return {};
    const TimeInto time(stats_.draft_seconds);
    const Result<std::span<const TokenId>> drafts =
        drafter()->draft({.tokens = tokens(), .max_drafts = max_drafts, .chooser = &chooser_});
    if (!drafts.ok()) return forgive_drafter(drafts.error());
    expects(drafts->size() <= static_cast<std::size_t>(max_drafts), "a drafter proposes no more than it was asked for");
    for (const TokenId id : *drafts) {
      if (id < 0 || id >= target().vocab()) break;  // a drafter's padding row: the target can never choose it
      block_.push_back(id);
    }
    return {};
  }

  Result<StepResult> verify() {
    const TimeInto time(stats_.verify_seconds);
    return target().step(block_, Role::kGenerated, LogitsWanted::kAll);
  }

  /// Decides what the rows yield and emits it up to the text's end; gives the number of tokens emitted.
  Result<int> judge(const MatView<const float>& logits) {
    const std::span<const TokenId> drafts{block_.data() + 1, block_.size() - 1};
    yielded_.clear();
    {
      const TimeInto time(stats_.choose_seconds);
      options().accept({.logits = logits, .drafts = drafts, .chooser = &chooser_}, yielded_);
    }
    std::size_t finite = 0;
    while (finite < yielded_.size() && std::isfinite(logits(static_cast<std::int64_t>(finite), yielded_[finite])))
      ++finite;
    if (finite == 0) {
      return fail(ErrorKind::kNumeric,
                  "[generate] the logits of token {} are not finite: expected numbers; check the weights",
                  token_count());
    }
    // The text may end before the broken row; if not, the next round meets it first
    yielded_.erase(yielded_.begin() + static_cast<std::ptrdiff_t>(finite), yielded_.end());
    const TimeInto time(stats_.emit_seconds);
    int emitted = 0;
    while (!finish_ && emitted < static_cast<int>(yielded_.size())) {
      const std::span<const float> row{logits.row(emitted), static_cast<std::size_t>(logits.cols)};
      emit({.token = yielded_[emitted++], .logits = row});
    }
    return emitted;
  }

  void emit(const Emission& emission) {
    const TokenId token = emission.token;
    tokens().push_back(token);
    chooser_.push(token);
    ++stats_.generated_tokens;
    const std::span<const TokenId> stops = options().stop_ids;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      finish_ = FinishReason::kStop;
    } else if (stats_.generated_tokens == max_tokens_) {
      finish_ = FinishReason::kLength;
    }
    if (request_.on_token) heed(request_.on_token(emission));
  }

  void heed(Proceed word) {
    if (finish_ || word == Proceed::kGoOn) return;
    finish_ = word == Proceed::kStop ? FinishReason::kStop : FinishReason::kCancelled;
  }

  Status tell_drafter(int first_row, const ConstMatRef& hidden) {
    if (drafter() == nullptr) return {};
    const Status seen =
        drafter()->observe({.tokens = tokens(), .first_row = first_row, .hidden = hidden, .parked = round_depth_ == 0});
    return seen.ok() ? seen : forgive_drafter(seen.error());
  }

  /// Numbers that broke in the drafter cost its guesses, never the text. Any other error stands.
  Status forgive_drafter(const Error& error) {
    if (error.kind != ErrorKind::kNumeric) return error;
    return drafter()->rewind_to(target().length());
  }

  Status rewind_target(int rows) {
    if (target().length() == rows) return {};
    if (!target().can_rewind_to(rows)) {
      return fail(ErrorKind::kUnsupported,
                  "[generate] the model's cache cannot go back from {} to {} rows: speculation needs that, use depth 0",
                  target().length(), rows);
    }
    return target().rewind_to(rows);
  }

  /// Puts target and drafter at `rows` rows, or at none where the target refuses.
  Status settle_at(int rows) {
    if (!rewind_target(rows).ok()) {
      if (Status emptied = target().rewind_to(0); !emptied.ok()) return emptied;
    }
    return drafter() == nullptr ? Status{} : drafter()->rewind_to(target().length());
  }

  /// The error, after putting everything where the next call can go on from. It outranks one of putting things right.
  Status abandon(const Error& error, int rows) {
    static_cast<void>(settle_at(rows));
    return error;
  }

  const GenerateRequest& request_;
  TokenChooser chooser_;  // stands at the end of the text
  int max_tokens_ = 0;
  std::optional<FinishReason> finish_;
  DecodeStats stats_;
  int round_depth_ = 0;           // drafts that the round asks for
  std::vector<TokenId> block_;    // of the step: the current token and its drafts
  std::vector<TokenId> yielded_;  // what the block's rows decided, before the text's end trims it
};

}  // namespace

Result<Generation> generate(const GenerateRequest& request) { return SpeculativeLoop(request).run(); }

}  // namespace latte
