#include "decode/depth_controller.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

namespace latte {
namespace {

constexpr int kMostDepth = 4;

/// A text as a drafter sees it, and a machine: how many drafts in a row would be right at every place, and what a round
/// takes. The unit of time is a plain step at the beginning.
struct Trace {
  std::vector<int> right;  ///< per place
  double row = 0.1;        ///< of a verify step, beyond the first
  double draft = 0.05;
  double cached_row = 0;         ///< what a cached row adds to a step of one row
  double cached_row_of_row = 0;  ///< and to every further row
  double resume = 0.1;           ///< a drafter that rested catches up: once, and per row
  double resume_row = 0.0005;
  double first = 2;  ///< the very first round of each depth takes so many times as long
  int first_rows = 256;

  double seconds(int depth, int place) const {
    return 1 + depth * (row + draft) + (cached_row + depth * cached_row_of_row) * place;
  }
  int accepted(int depth, int place) const { return std::min(depth, right[static_cast<std::size_t>(place)]); }
  int size() const { return static_cast<int>(right.size()); }
};

double at_fixed_depth(const Trace& trace, int depth) {
  double seconds = 0;
  for (int place = 0; place < trace.size(); place += trace.accepted(depth, place) + 1)
    seconds += trace.seconds(depth, place);
  return seconds;
}

double at_best_depth(const Trace& trace) {
  double best = at_fixed_depth(trace, 0);
  for (int depth = 1; depth <= kMostDepth; ++depth) best = std::min(best, at_fixed_depth(trace, depth));
  return best;
}

/// With times that are seen with so much noise.
double under_control(const Trace& trace, double noise, std::mt19937_64& random, DepthController& controller,
                     const std::function<void(int place, int depth)>& see = {}) {
  std::normal_distribution<double> normal(0, noise);
  double seconds = 0;
  int rested = 0;
  std::array<bool, kMostDepth + 1> seen{};
  for (int place = 0; place < trace.size();) {
    const int rows = trace.first_rows + place;
    const int depth = controller.choose(rows);
    if (see) see(place, depth);
    const int accepted = trace.accepted(depth, place);
    double time = trace.seconds(depth, place);
    if (!std::exchange(seen[static_cast<std::size_t>(depth)], true)) time *= trace.first;
    if (depth > 0 && rested > 0) time += trace.resume + std::min(rested, 512) * trace.resume_row;
    rested = depth > 0 ? 0 : rested + accepted + 1;
    seconds += time;
    controller.record({.drafted = depth,
                       .tested = std::min(depth, accepted + 1),
                       .accepted = accepted,
                       .seconds = time * std::max(0.5, 1 + normal(random)),
                       .cached_rows = rows});
    place += accepted + 1;
  }
  return seconds;
}

/// Acceptance by position of one kind of text; what lies deeper declines.
using Kind = std::array<double, 3>;
constexpr Kind kRandomTokens = {0.004, 0.004, 0.004};
constexpr std::array<Kind, 8> kKinds = {{{.70, .55, .40},
                                         {.69, .50, .40},
                                         {.60, .40, .25},
                                         {.38, .37, .25},
                                         {.25, .20, .10},
                                         {.02, .02, .02},
                                         {.85, .80, .70},
                                         {.50, .40, .30}}};

void append(std::vector<int>& right, const Kind& kind, int places, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int i = 0; i < places; ++i) {
    int run = 0;
    while (run <= kMostDepth && uniform(random) < (run < 3 ? kind[static_cast<std::size_t>(run)] : 0.9 * kind[2]))
      ++run;
    right.push_back(run);
  }
}

/// One kind of text or several, one after the other, on any machine; every third behind a context whose length counts.
Trace random_trace(int number, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0, 1);
  constexpr int kPlaces = 8000;
  Trace trace;
  const int parts = number % 5 == 0 ? 1 : 1 + static_cast<int>(4 * uniform(random));
  for (int part = 0; part < parts; ++part)
    append(trace.right, kKinds[static_cast<std::size_t>(8 * uniform(random))], kPlaces / parts, random);
  trace.row = 0.02 + 0.25 * uniform(random);
  trace.draft = 0.02 + 0.15 * uniform(random);
  if (number % 3 == 0) {
    trace.cached_row = 2e-5 + 1e-4 * uniform(random);
    trace.cached_row_of_row = trace.cached_row * uniform(random);
  }
  return trace;
}

Trace of_one_kind(const Kind& kind, int places) {
  std::mt19937_64 random(5);
  Trace trace;
  append(trace.right, kind, places, random);
  return trace;
}

TEST(DepthController, LosesAtMostFivePercentToTheBestDepthAndOneToPlainDecoding) {
  const auto clock = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::cout << fmt::format("half of the traces are drawn by seed {}\n", clock);
  for (int number = 0; number < 30; ++number) {
    const std::uint64_t seed =
        number < 15 ? static_cast<std::uint64_t>(number) : clock + static_cast<std::uint64_t>(number);
    std::mt19937_64 random(seed);
    const Trace trace = random_trace(number, random);
    DepthController controller(kMostDepth);
    const double seconds = under_control(trace, 0.03, random, controller);
    const auto what =
        fmt::format("trace {} of seed {}, row {:.3f}, draft {:.3f}", number, seed, trace.row, trace.draft);
    EXPECT_LE(seconds, 1.05 * at_best_depth(trace)) << what;
    EXPECT_LE(seconds, 1.01 * at_fixed_depth(trace, 0)) << what;
  }
}

TEST(DepthController, RandomTokensCostAtMostOnePercent) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const Trace trace = of_one_kind(kRandomTokens, 2000);
    DepthController controller(kMostDepth);
    EXPECT_LE(under_control(trace, 0.03, random, controller), 1.01 * at_fixed_depth(trace, 0)) << seed;
    EXPECT_EQ(controller.depth(), 0) << seed;
  }
}

TEST(DepthController, ParkingEndsWhereTheTextBecomesEasy) {
  std::mt19937_64 random(1);
  Trace trace = of_one_kind(kRandomTokens, 3000);
  append(trace.right, kKinds[6], 3000, random);
  DepthController controller(kMostDepth);
  int parked = 0, deep = 0;
  under_control(trace, 0.03, random, controller, [&](int place, int depth) {
    parked += place > 1000 && place < 3000 && depth == 0 ? 1 : 0;
    deep += place >= 4000 && depth >= 3 ? 1 : 0;
  });
  EXPECT_GT(parked, 1900);
  EXPECT_GT(deep, 400) << "of about 500 rounds of four tokens";
}

TEST(DepthController, ProbesStayUnderHalfAPercent) {
  for (const Kind& kind : kKinds) {
    std::mt19937_64 random(2);
    const Trace trace = of_one_kind(kind, 6000);
    DepthController controller(kMostDepth);
    under_control(trace, 0.03, random, controller);
    EXPECT_LE(controller.probe_seconds(), 0.005 * controller.seconds_in_all() + 8) << kind[0];
  }
}

TEST(DepthController, IsPlainWhereARowCostsAsMuchAsAStep) {
  std::mt19937_64 random(3);
  Trace trace = of_one_kind(kKinds[6], 4000);
  trace.row = 1;
  DepthController controller(kMostDepth);
  EXPECT_LE(under_control(trace, 0.03, random, controller), 1.01 * at_fixed_depth(trace, 0));
  EXPECT_EQ(controller.depth(), 0);
}

TEST(DepthController, GoesToTheDeepestWhereRowsAreFree) {
  std::mt19937_64 random(4);
  Trace trace = of_one_kind(kKinds[6], 2000);
  trace.row = trace.draft = 0.01;
  DepthController controller(kMostDepth);
  under_control(trace, 0.03, random, controller);
  EXPECT_EQ(controller.depth(), kMostDepth);
  EXPECT_NEAR(controller.acceptance(0), 0.85, 0.15);
  EXPECT_NEAR(controller.seconds(kMostDepth, 256), 1.08, 0.05);
}

TEST(DepthController, StalledRoundsDoNotMoveIt) {
  std::mt19937_64 random(6);
  const Trace trace = of_one_kind(kKinds[6], 400);
  DepthController controller(kMostDepth);
  under_control(trace, 0, random, controller);
  const int depth = controller.depth();
  ASSERT_GT(depth, 0);
  const double before = controller.seconds(depth, 0);
  controller.record({.drafted = depth, .tested = 1, .accepted = 0, .seconds = 500, .cached_rows = 700});
  EXPECT_LE(controller.seconds(depth, 0), 1.4 * before);
}

TEST(DepthController, SlopesCarryAStaleTimeAlong) {
  const std::array<double, 2> slopes = {0.001, 0.002};
  DepthController controller(1, slopes);
  controller.record({.seconds = 1, .cached_rows = 1000});
  EXPECT_DOUBLE_EQ(controller.seconds(0, 3000), 3);
  for (int round = 0; round < 5; ++round)
    controller.record({.drafted = 1, .tested = 1, .accepted = 1, .seconds = 2, .cached_rows = 1000});
  EXPECT_DOUBLE_EQ(controller.seconds(1, 2000), 4);
}

TEST(DepthController, WithoutDraftsThereIsNothingToChoose) {
  DepthController controller(0);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(controller.choose(round), 0);
    controller.record({.seconds = 1, .cached_rows = round});
  }
  EXPECT_FALSE(controller.probing());
}

}  // namespace
}  // namespace latte
