#pragma once

#include <array>
#include <cstdint>

#include "base/stopwatch.h"
#include "plan/step_class.h"

namespace latte {

/// Most drafts a verify step can hold beside the current token.
inline constexpr int kMaxDrafts = kMaxDecodeRows - 1;

/// What one run of the decoding loop did, and where its time went. Times are in seconds.
struct DecodeStats {
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< of the prompt, already in the target's cache
  int generated_tokens = 0;
  int depth = 0;  ///< most drafts asked for per round

  std::int64_t rounds = 0;             ///< steps after the prompt
  std::int64_t emitted_in_rounds = 0;  ///< generated tokens but the first, which the prompt's last row gives
  std::array<std::int64_t, kMaxDrafts + 1> rounds_per_depth{};  ///< by the drafts asked for
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  /// Draft i of a round is tested when every draft before it was accepted and nothing ended the text there.
  std::array<std::int64_t, kMaxDrafts> tested_per_position{};
  std::array<std::int64_t, kMaxDrafts> accepted_per_position{};

  double prompt_seconds = 0;    ///< until the first token is chosen, the drafter's share included
  double generate_seconds = 0;  ///< from there to the end; the next five are parts of it
  double draft_seconds = 0;
  double verify_seconds = 0;
  double choose_seconds = 0;
  double emit_seconds = 0;    ///< in the caller's callback
  double settle_seconds = 0;  ///< rewinding, and telling the drafter what stayed

  double unaccounted_seconds() const { return generate_seconds - seconds_of_rounds() - emit_seconds; }
  /// What rounds took, the caller's callback aside.
  double seconds_of_rounds() const { return draft_seconds + verify_seconds + choose_seconds + settle_seconds; }
  /// Mean tokens per round, the target's own included; 0 before the first round.
  double emitted_per_round() const {
    return rounds == 0 ? 0 : static_cast<double>(emitted_in_rounds) / static_cast<double>(rounds);
  }

  /// Books one round that asked for `wanted` drafts, got `drafts` of them and emitted `emitted` tokens out of `yielded`
  /// (fewer when the text ended).
  void count_round(int wanted, int drafts, int yielded, int emitted);
};

/// Adds the time it lives to `seconds`.
class TimeInto {
 public:
  explicit TimeInto(double& seconds) : seconds_(seconds) {}
  TimeInto(const TimeInto&) = delete;
  TimeInto& operator=(const TimeInto&) = delete;
  ~TimeInto() { seconds_ += clock_.seconds(); }

 private:
  double& seconds_;
  Stopwatch clock_;
};

}  // namespace latte
