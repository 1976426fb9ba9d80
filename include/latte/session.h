#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/engine.h"
#include "latte/error.h"
#include "latte/options.h"

namespace latte {

struct SessionState;
struct SnapshotState;

/// Which form steps took: steps and the rows in them.
struct PathCounts {
  std::int64_t absorbed_steps = 0;
  std::int64_t absorbed_rows = 0;
  std::int64_t materialised_steps = 0;
  std::int64_t materialised_rows = 0;
  std::int64_t gqa_steps = 0;  ///< of models with grouped-query attention, where the others are 0
  std::int64_t gqa_rows = 0;
};

/// A token and the natural logarithm of its probability in the model's own distribution: softmax of the logits, before
/// bias, penalties, temperature and filters.
struct TokenLogprob {
  std::int32_t id = 0;
  std::string token;  ///< its bytes, perhaps a part of a character; empty without a tokenizer
  double logprob = 0;
};

/// A generated token with the most likely ones at its place, best first. The generated token need not be among them.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;  ///< RunOptions::logprobs of them, fewer where fewer are possible
};

/// One generated token as it comes.
struct TokenEvent {
  std::int32_t id = 0;
  std::string_view text;  ///< what became certain: whole UTF-8 characters, often none; empty without a tokenizer
  const TokenLogprobs* logprobs = nullptr;  ///< when RunOptions asks for them; valid during the call. Null in a last
                                            ///< event that only brings text held back until the end
};

/// Return false to stop; the result's finish reason is then "cancelled".
using TokenCallback = std::function<bool(const TokenEvent&)>;

/// Told how much of a long prompt is read; return false to stop as above.
using PromptCallback = std::function<bool(int rows_done, int rows_in_all)>;

/// What was decided for one step of the main model.
struct StepReport {
  std::string role;  ///< "prompt", "generated"
  std::string form;  ///< "absorbed", "materialised", "gqa"
  int rows = 0;      ///< L, new rows
  int cached = 0;    ///< T, rows in the cache with the new ones
  std::string reason;
};

using StepCallback = std::function<void(const StepReport&)>;

/// What one call of generate did. Seconds are wall time.
struct GenerateResult {
  std::string text;                     ///< of the generated ids, stop tokens and stop texts left out
  std::vector<std::int32_t> ids;        ///< generated, a stop token included
  std::vector<TokenLogprobs> logprobs;  ///< one per id when RunOptions asks for them
  std::vector<std::int32_t> prompt_ids;
  std::string finish_reason;  ///< "stop", "length", "cancelled"
  std::uint64_t seed = 0;
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< prompt tokens that were in the cache already
  int generated_tokens = 0;
  double prompt_seconds = 0;
  double generate_seconds = 0;
  double draft_seconds = 0;                    ///< of generate_seconds
  double verify_seconds = 0;                   ///< of generate_seconds
  double unaccounted_seconds = 0;              ///< of generate_seconds: what no timer saw
  std::string spec_type;                       ///< "none", "mtp", "draft", "lookup"
  int draft_depth = 0;                         ///< most drafts per round
  std::int64_t rounds = 0;                     ///< steps after the prompt
  std::vector<std::int64_t> rounds_per_depth;  ///< by the drafts that they asked for: 0, 1, ... draft_depth
  double emitted_per_round = 0;                ///< the target's own token included
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::vector<std::int64_t> accepted_per_position;
  std::vector<std::int64_t> tested_per_position;  ///< rounds in which all drafts before were accepted
  PathCounts paths;                               ///< of the main model
  std::int64_t peak_bytes = 0;                    ///< largest resident size of the process so far
  std::string device;
  std::string isa;
  std::string numerics;
};

/// Teacher-forced evaluation.
struct LogitsOptions {
  std::vector<int> steps;  ///< rows per step, adding up to the number of ids; empty: one step
  int redo = 0;            ///< after a step of more rows: rewind this many and feed them again
  StepRole role = StepRole::kAuto;
};

/// Receives logits [rows, vocab] of positions first .. first + rows - 1, in order. `logits` is valid during the call.
using LogitsSink = std::function<Status(int first, std::span<const float> logits)>;

/// What Session::load found in a file.
struct CacheFileReport {
  int rows = 0;              ///< tokens whose rows the caches now hold
  std::string drafter;       ///< of the session that was saved: "mtp", "draft", "lookup", "none"
  std::string drafter_note;  ///< empty: this session's drafter goes on as that one would have; else why it does not
  bool drafter_starts_anew = false;  ///< it keeps rows of its own and got none: saving again spares the next run that
};

/// Everything a session holds, in host memory. Immutable, cheap to copy.
class Snapshot {
 public:
  int length() const;

 private:
  friend class Session;
  explicit Snapshot(std::shared_ptr<const SnapshotState> state) : state_(std::move(state)) {}

  std::shared_ptr<const SnapshotState> state_;
};

/// One timeline: tokens, caches, drafter. Move-only; one thread at a time. Keeps its engine's model alive. A failed
/// call leaves a session that can be used again: its caches hold a prefix of tokens().
class Session {
 public:
  /// Errors: a drafter that the model or the options do not offer, a depth out of range.
  static Result<Session> open(const Engine& engine, const SessionOptions& options = {});

  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  /// Continues `prompt_ids`, which may be tokens() of this session. What the caches hold of them already is reused (at
  /// least one token is fed), the rest of the caches is rewound exactly. Errors: ids outside the vocabulary, a prompt
  /// longer than the context, no memory, NaN or infinity (kNumeric, naming the layer).
  Result<GenerateResult> generate(std::span<const std::int32_t> prompt_ids, const RunOptions& options = {},
                                  const TokenCallback& on_token = {}, const PromptCallback& on_prompt = {});
  /// Continues a text as it stands, without chat template; BOS comes first when the tokenizer says so.
  Result<GenerateResult> generate(std::string_view prompt, const RunOptions& options = {},
                                  const TokenCallback& on_token = {}, const PromptCallback& on_prompt = {});

  /// Feeds `ids` into an emptied session step by step and hands out every position's logits; `mtp` (may be empty) gets
  /// the MTP layer's, one row fewer: row i is made from hidden row i and token i + 1.
  Status logits(std::span<const std::int32_t> ids, const LogitsOptions& options, const LogitsSink& main,
                const LogitsSink& mtp = {});

  /// Tokens whose rows the caches hold.
  std::span<const std::int32_t> tokens() const;
  int length() const;
  /// Drops rows from `length` on, exactly. Errors: a length past length(); nothing changes then.
  Status rewind_to(int length);
  /// Forgets everything; memory is kept.
  void reset();

  Snapshot snapshot() const;
  /// Takes over a snapshot of a session of the same engine. Errors: another model's or another cache type's.
  Status restore(const Snapshot& snapshot);

  /// Writes all that restores this session (tokens, rows of every cache, the drafter's state) and `note`, any text of
  /// at most 16 MiB, to a file (docs/prompt-cache.md). The file appears whole or not at all, and is on the disk when
  /// this returns; one that was there before stays until then. Errors: what the system refuses; the old file stays.
  Status save(const std::string& path, std::string_view note = {}) const;
  /// Whether save() could write `path`, which it leaves as it is. Errors: those of save, as far as they can be known
  /// before: a place that cannot be written, a file that holds something else than a session.
  static Status check_save(const std::string& path);
  /// Takes over a saved session and gives the note. Another drafter or draft model loads the rows and starts its own
  /// state anew, which `report` says. Errors: no such file; a broken one or another version; rows of another model,
  /// cache type, device, instruction set or form of attention; more rows than the context. The session is then as
  /// before.
  Result<std::string> load(const std::string& path, CacheFileReport* report = nullptr);

  /// Forms counted since the session was opened.
  PathCounts paths() const;
  /// `on_step` is told of every later step of the main model before it runs, with the form and why; an empty one ends
  /// that.
  void watch_steps(StepCallback on_step);

 private:
  friend struct SessionAccess;
  explicit Session(std::unique_ptr<SessionState> state);

  std::unique_ptr<SessionState> state_;
};

}  // namespace latte
