#include "decode/depth_controller.h"

#include <algorithm>
#include <cmath>

#include "base/contract.h"

namespace latte {
namespace {

/// What a test weighs after the next one: memories of about 100 and 14 tests.
constexpr double kLongMemory = 0.99, kShortMemory = 0.93;
/// The memories contradict each other from so many deviations on.
constexpr double kContradiction = 2.2;
constexpr double kTestsToContradict = 4;
/// Where nothing was tested: as if so many tests had come to the first share, and further positions to a little less
/// than the one before. Hopeful, so that a depth is tried before it is judged.
constexpr double kAssumedTests = 2, kAssumedAcceptance = 0.6, kAssumedDecline = 0.85;
/// A draft's share of a round's time where only one depth was seen.
constexpr double kAssumedDraftCost = 0.15;

/// Rounds that ask for a first draft before judging, whether the drafter has one or not.
constexpr int kMostRoundsToBegin = 32;

constexpr double kHysteresis = 0.03;
/// A round's weight in the mean of its depth, and the most of it that one round may take: machines stall at times.
constexpr double kRoundWeight = 0.15, kMostOfMean = 3;
/// Rounds that are measured before anything is judged by them. First rounds are slow for many reasons, so the least of
/// the first few is taken.
constexpr int kRoundsToKnow = 4, kFirstRounds = 3;

constexpr double kProbeShare = 0.004;  // a probe that has begun may end above it
/// Rounds of a probe: acceptance takes some, time alone one. A probe that looks good lately goes on.
constexpr int kProbeRounds = 8, kFewestProbeRounds = 3, kMoreProbeRounds = 24;
/// Hopeless: below so much of the rate in use.
constexpr double kHopeless = 0.9;
/// Tokens between probes of one depth, and the most that they grow by.
constexpr double kProbeTokens = 64, kMostProbeGrowth = 1.5;
/// What is left of short memory where a probe begins: it is of an earlier text.
constexpr double kKeptForProbe = 0.2;

/// 1 + p_1 + p_1 p_2 + ..., share(i) being p of position i.
template <class Share>
double expected_tokens(int depth, const Share& share) {
  double all = 1, all_right = 1;
  for (int i = 0; i < depth; ++i) {
    all_right *= share(i);
    all += all_right;
  }
  return all;
}

}  // namespace

DepthController::DepthController(int max_depth, std::span<const double> slopes)
    : max_depth_(std::min(max_depth, kMaxDrafts)) {
  expects(max_depth >= 0, "a depth is at least 0");
  std::copy_n(slopes.begin(), std::min(slopes.size(), slopes_.size()), slopes_.begin());
}

void DepthController::Acceptance::add(bool right_now) {
  const double one = right_now ? 1 : 0;
  tested = tested * kLongMemory + 1;
  right = right * kLongMemory + one;
  lately_tested = lately_tested * kShortMemory + 1;
  lately_right = lately_right * kShortMemory + one;
  constexpr double kLeastVariance = 0.02;
  const double share = right / tested;
  const double deviation = std::sqrt(std::max(share * (1 - share), kLeastVariance) / lately_tested);
  if (lately_tested > kTestsToContradict &&
      std::abs(lately_right / lately_tested - share) > kContradiction * deviation) {
    tested = lately_tested;
    right = lately_right;
  }
}

double DepthController::acceptance(int position) const {
  double assumed = kAssumedAcceptance;
  double share = assumed;
  for (int i = 0; i <= position; ++i) {
    const Acceptance& at = positions_[static_cast<std::size_t>(i)];
    share = (at.right + kAssumedTests * assumed) / (at.tested + kAssumedTests);
    assumed = share * kAssumedDecline;
  }
  return share;
}

double DepthController::tokens(int depth) const {
  return expected_tokens(depth, [&](int i) { return acceptance(i); });
}

double DepthController::seen_seconds(int depth, int cached_rows) const {
  const RoundTime& at = times_[static_cast<std::size_t>(depth)];
  return at.seconds + slopes_[static_cast<std::size_t>(depth)] * (cached_rows - at.cached_rows);
}

double DepthController::seconds(int depth, int cached_rows) const {
  const RoundTime& at = times_[static_cast<std::size_t>(depth)];
  if (at.rounds == 0) return assumed_seconds(depth, cached_rows);
  const double seen = seen_seconds(depth, cached_rows);
  if (at.rounds >= kFirstRounds || depth == 0) return seen;
  const double assumed = assumed_seconds(depth, cached_rows);
  return assumed > 0 ? std::min(seen, assumed) : seen;
}

/// By the nearest depths that were seen, those below first. 0 where there are none.
double DepthController::assumed_seconds(int depth, int cached_rows) const {
  const auto seen = [&](int k) { return times_[static_cast<std::size_t>(k)].rounds > 0; };
  int below = depth - 1;
  while (below >= 0 && !seen(below)) --below;
  if (below < 0) {
    int above = depth + 1;
    while (above <= max_depth_ && !seen(above)) ++above;
    return above > max_depth_ ? 0 : seconds(above, cached_rows) / (1 + kAssumedDraftCost * (above - depth));
  }
  int further = below - 1;
  while (further >= 0 && !seen(further)) --further;
  const double near = seconds(below, cached_rows);
  const double step = further < 0 ? kAssumedDraftCost * near
                                  : std::max(0.0, (near - seconds(further, cached_rows)) / (below - further));
  return near + step * (depth - below);
}

double DepthController::rate(int depth, int cached_rows) const {
  const double time = seconds(depth, cached_rows);
  return time > 0 ? tokens(depth) / time : 0;
}

/// By short memory alone.
double DepthController::rate_lately(int depth, int cached_rows) const {
  const double all = expected_tokens(depth, [&](int i) {
    const Acceptance& at = positions_[static_cast<std::size_t>(i)];
    return at.lately_tested > 0 ? at.lately_right / at.lately_tested : acceptance(i);
  });
  const double time = seconds(depth, cached_rows);
  return time > 0 ? all / time : 0;
}

/// What so many tokens take at the depth in use.
double DepthController::seconds_of_tokens(double count, int cached_rows) const {
  const double now = rate(depth_, cached_rows);
  return now > 0 ? count / now : 0;
}

int DepthController::choose(int cached_rows) {
  if (max_depth_ == 0 || times_[0].rounds < kRoundsToKnow) return 0;
  if (times_[1].rounds < kRoundsToKnow && begun_ < kMostRoundsToBegin) {
    ++begun_;
    return depth_ = 1;
  }
  if (probing()) return probe_.depth;
  move(cached_rows);
  begin_probe(cached_rows);
  return probing() ? probe_.depth : depth_;
}

/// To the best depth, at most one beyond those whose rounds were seen.
void DepthController::move(int cached_rows) {
  int deepest = 0;
  for (int k = 0; k <= max_depth_; ++k) {
    if (times_[static_cast<std::size_t>(k)].rounds > 0) deepest = k;
  }
  int best = 0;
  for (int k = 1; k <= std::min(deepest + 1, max_depth_); ++k) {
    if (rate(k, cached_rows) > rate(best, cached_rows)) best = k;
  }
  const double margin = best == 0 ? 0 : kHysteresis;
  if (rate(best, cached_rows) > (1 + margin) * rate(depth_, cached_rows)) depth_ = best;
}

/// Plain decoding and the neighbours of the depth in use are probed, the stalest first.
void DepthController::begin_probe(int cached_rows) {
  int stalest = -1;
  double most = 1;
  for (int k = 0; k <= max_depth_; ++k) {
    if (k == depth_ || (k != 0 && std::abs(k - depth_) > 1)) continue;
    RoundTime& at = times_[static_cast<std::size_t>(k)];
    if (at.probe_after == 0) at.probe_after = seconds_of_tokens(kProbeTokens, cached_rows);
    const double age = (elapsed_ - at.last_used) / at.probe_after;
    if (age <= most) continue;
    most = age;
    stalest = k;
  }
  if (stalest < 0) return;
  const int rounds = stalest > depth_ ? kProbeRounds : 1;
  const double loss = seconds(stalest, cached_rows) - seconds_of_tokens(tokens(stalest), cached_rows);
  if (probe_loss_ + rounds * std::max(0.0, loss) > kProbeShare * elapsed_) return;
  probe_ = {.depth = stalest, .rounds_left = rounds};
  for (int i = depth_; i < stalest; ++i) {
    positions_[static_cast<std::size_t>(i)].lately_tested *= kKeptForProbe;
    positions_[static_cast<std::size_t>(i)].lately_right *= kKeptForProbe;
  }
}

void DepthController::record(const RoundOutcome& outcome) {
  expects(outcome.drafted >= 0 && outcome.drafted <= kMaxDrafts && outcome.accepted <= outcome.tested &&
              outcome.tested <= outcome.drafted,
          "a round's drafts are tested before they are accepted");
  const double rate_before = rate(depth_, outcome.cached_rows);
  elapsed_ += outcome.seconds;
  for (int i = 0; i < outcome.tested; ++i) positions_[static_cast<std::size_t>(i)].add(i < outcome.accepted);

  const bool resumed = outcome.drafted > 0 && last_drafted_ == 0;
  last_drafted_ = outcome.drafted;
  if (!resumed) learn_time(outcome);
  times_[static_cast<std::size_t>(outcome.drafted)].last_used = elapsed_;
  if (probing()) go_on_with_probe(outcome, rate_before);
}

void DepthController::learn_time(const RoundOutcome& outcome) {
  RoundTime& at = times_[static_cast<std::size_t>(outcome.drafted)];
  if (at.rounds == 0) {
    at.seconds = outcome.seconds;
  } else {
    const double expected = seen_seconds(outcome.drafted, outcome.cached_rows);
    if (at.rounds < kFirstRounds) {
      at.seconds = std::min(expected, outcome.seconds);
    } else {
      at.seconds = expected + kRoundWeight * (std::min(outcome.seconds, kMostOfMean * expected) - expected);
    }
  }
  at.cached_rows = outcome.cached_rows;
  ++at.rounds;
}

void DepthController::go_on_with_probe(const RoundOutcome& outcome, double rate_before) {
  const int rows = outcome.cached_rows;
  if (rate_before > 0)
    probe_loss_ = std::max(0.0, probe_loss_ + outcome.seconds - (outcome.accepted + 1) / rate_before);
  --probe_.rounds_left;
  const double promised = rate(probe_.depth, rows);
  const double in_use = rate(depth_, rows);
  const bool better = promised > (1 + kHysteresis) * in_use;
  if (probe_.depth > depth_ && !better) {
    const bool enough = probe_.rounds_left <= kProbeRounds - kFewestProbeRounds;
    if (enough && promised < kHopeless * in_use) probe_.rounds_left = 0;
    if (!probing() && probe_.rounds_added < kMoreProbeRounds && rate_lately(probe_.depth, rows) > in_use) {
      ++probe_.rounds_added;
      probe_.rounds_left = 1;
    }
  }
  if (probing()) return;
  const double shortest = seconds_of_tokens(kProbeTokens, rows);
  double& probe_after = times_[static_cast<std::size_t>(probe_.depth)].probe_after;
  probe_after = better ? shortest : std::min(2 * probe_after, kMostProbeGrowth * shortest);
  if (better) depth_ = probe_.depth;
}

}  // namespace latte
