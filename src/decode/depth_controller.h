#pragma once

#include <array>
#include <span>

#include "decode/decode_stats.h"

namespace latte {

/// What one round came to.
struct RoundOutcome {
  int drafted = 0;      ///< drafts that were verified
  int tested = 0;       ///< of them, those that met the target's choice: all accepted ones and the first refused one
  int accepted = 0;     ///< of those
  double seconds = 0;   ///< of the round, what the caller did with its tokens aside
  int cached_rows = 0;  ///< behind the round's first row
};

/// Chooses how many drafts the next round asks for, from 0 (plain decoding) to a maximum, by what rounds have come to:
/// the depth k of the most tokens per second, (1 + p_1 + p_1 p_2 + ...) / t(k, T). p_i is how often draft i was right
/// where those before it were; t(k, T) the time of a round of k drafts behind T cached rows.
///
/// Acceptance is remembered over about a hundred tests and begins anew where the latest dozen contradict it: text
/// changes its kind. Another depth must promise 3% to be taken, but for plain decoding, to which any loss is enough.
/// A depth that is not in use grows stale and is probed, at intervals that grow while probes change nothing; a probe
/// begins only where what probes have cost, less what they gained, would stay under 0.4% of all time, since it may go
/// on longer than planned. So no depth is left for good.
///
/// Knows no clock and no model: a simulation drives it as well (depth_controller_test.cc).
class DepthController {
 public:
  /// `slopes`: seconds that a cached row adds to a round of 0, 1, ... drafts; those that are missing are 0.
  explicit DepthController(int max_depth, std::span<const double> slopes = {});

  /// Drafts to ask for in the next round, behind `cached_rows`.
  int choose(int cached_rows);
  /// Told after every round. A round of fewer drafts than asked for, none included, counts as one of what it had.
  void record(const RoundOutcome& outcome);

  /// The depth in use between probes.
  int depth() const { return depth_; }
  bool probing() const { return probe_.rounds_left > 0; }
  /// Expected share of drafts at `position` (from 0) that are right where those before them were.
  double acceptance(int position) const;
  /// Expected tokens of a round.
  double tokens(int depth) const;
  /// Expected seconds of a round; what was never seen is judged by its neighbours. 0 before the first round.
  double seconds(int depth, int cached_rows) const;
  /// What probes cost beyond what the depth in use would have taken for their tokens, in seconds.
  double probe_seconds() const { return probe_loss_; }
  double seconds_in_all() const { return elapsed_; }

 private:
  /// Tests of one position and how many were right: of long memory and of short.
  struct Acceptance {
    double tested = 0, right = 0;
    double lately_tested = 0, lately_right = 0;

    void add(bool right_now);
  };
  /// Rounds of one depth.
  struct RoundTime {
    double seconds = 0;  ///< behind `cached_rows`
    int cached_rows = 0;
    int rounds = 0;
    double last_used = 0;    ///< elapsed seconds
    double probe_after = 0;  ///< seconds without use until the next probe; 0: not probed yet
  };
  struct Probe {
    int depth = 0;
    int rounds_left = 0;
    int rounds_added = 0;
  };

  double seen_seconds(int depth, int cached_rows) const;
  double assumed_seconds(int depth, int cached_rows) const;
  double rate(int depth, int cached_rows) const;
  double rate_lately(int depth, int cached_rows) const;
  double seconds_of_tokens(double count, int cached_rows) const;
  void learn_time(const RoundOutcome& outcome);
  void move(int cached_rows);
  void begin_probe(int cached_rows);
  void go_on_with_probe(const RoundOutcome& outcome, double rate_before);

  int max_depth_;
  std::array<double, kMaxDrafts + 1> slopes_{};
  std::array<Acceptance, kMaxDrafts> positions_{};
  std::array<RoundTime, kMaxDrafts + 1> times_{};
  int depth_ = 0;
  int begun_ = 0;         // rounds that asked for the first drafts of all
  int last_drafted_ = 0;  // a drafter that rested catches up first, which is no time of its depth
  Probe probe_;
  double elapsed_ = 0;
  double probe_loss_ = 0;
};

}  // namespace latte
