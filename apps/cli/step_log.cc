#include "step_log.h"

#include <fmt/format.h>

#include <algorithm>

namespace latte::cli {

void StepLog::add(const StepReport& step) {
  const auto same = std::find_if(kinds_.begin(), kinds_.end(), [&step](const Kind& kind) {
    return kind.first.role == step.role && kind.first.form == step.form && kind.first.rows == step.rows;
  });
  Kind& kind = same != kinds_.end() ? *same : kinds_.emplace_back(Kind{.first = step});
  ++kind.steps;
  kind.last_cached = step.cached;
}

std::string StepLog::text() const {
  std::string text;
  for (const Kind& kind : kinds_) {
    const std::string cached = kind.steps == 1 ? fmt::format("{}", kind.first.cached)
                                               : fmt::format("{} to {}", kind.first.cached, kind.last_cached);
    text += fmt::format("{} {} step{}: L {}, T {}: {}\n", kind.steps, kind.first.role, kind.steps == 1 ? "" : "s",
                        kind.first.rows, cached, kind.first.reason);
  }
  return text;
}

}  // namespace latte::cli
