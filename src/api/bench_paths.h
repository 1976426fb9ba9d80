#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attention/path_counters.h"
#include "latte/error.h"
#include "latte/session.h"
#include "model/config.h"
#include "plan/choose_form.h"

namespace latte {

/// One step of a test: its new rows and what the cache holds before them.
struct BenchStep {
  int rows = 1;
  int rows_before = 0;
};

PathCounts path_counts(const PathCounters& counters);

/// The forms that the steps of a test claim to take: generated rows the absorbed one unless another is forced, prompt
/// rows what the planner's rule says.
PathCounts claimed_paths(const ModelConfig& config, const FormRule& rule, Role role,
                         const std::vector<BenchStep>& steps);

/// "absorbed", "materialised", "gqa", or several with a plus between.
std::string forms_of(const PathCounts& paths);

/// Whether `counted` is exactly `samples` times what one sample claims. Errors: kInvalidInput with both.
Status check_paths(std::string_view test, const PathCounts& claimed, std::int64_t samples, const PathCounts& counted);

/// The same for a run whose number of steps is open: its steps take the forms of `claimed` and no others.
Status check_forms(std::string_view test, const PathCounts& claimed, const PathCounts& counted);

PathCounts operator+(const PathCounts& a, const PathCounts& b);
PathCounts operator-(const PathCounts& a, const PathCounts& b);

}  // namespace latte
