#pragma once

#include <string>
#include <vector>

#include "latte/session.h"

namespace latte::cli {

/// What -v tells of a run's steps: each kind of step (role, form, rows) once, with how many there were, the cached rows
/// they saw and the reason of the first.
class StepLog {
 public:
  void add(const StepReport& step);
  void clear() { kinds_.clear(); }

  /// A line per kind, in the order they came up.
  std::string text() const;

 private:
  struct Kind {
    StepReport first;
    int steps = 0;
    int last_cached = 0;
  };

  std::vector<Kind> kinds_;
};

}  // namespace latte::cli
