#pragma once

#include "api/bench_model.h"
#include "latte/bench.h"
#include "latte/error.h"

namespace latte {

/// Rows that a replay needs beside its prompt and what it generates: some to begin with, and the drafts of its last
/// round.
inline constexpr int kReplayMargin = 32;

/// Adds to the report, for each count of generated rows and each depth, plain decoding and decoding with the drafter of
/// the same stretches of the text; samples take turns. The text's own tokens are the model's choices, so a draft is
/// accepted when it is what the text goes on with. Errors: a drafter that is not there, a text that is too short, steps
/// of another form than generated rows take.
Status measure_speculation(const BenchRequest& request, BenchModel& model, const BenchProgress& progress,
                           BenchReport& report);

}  // namespace latte
