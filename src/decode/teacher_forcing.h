#pragma once

#include <span>

#include "latte/session.h"
#include "model/timeline.h"

namespace latte {

/// Ids fed as they are, with every position's logits handed out in order.
struct TeacherForcing {
  Timeline& main;              ///< empty
  MtpTimeline* mtp = nullptr;  ///< empty, or null: not evaluated
  std::span<const TokenId> ids;
  const LogitsOptions& options;
  int step_rows = 0;          ///< rows of a step where the options name none, all of them prompt rows; 0: all at once
  const LogitsSink& on_main;  ///< may be empty
  const LogitsSink& on_mtp;   ///< may be empty; row i comes from hidden row i and token i + 1, one row fewer than ids
};

/// Runs the steps; with `redo`, each step's last rows are rewound and fed again, and the logits handed out are those of
/// the second time. Errors: steps that do not add up to the ids, a step or a sink that fails; the timelines then hold
/// what was fed.
Status evaluate(const TeacherForcing& request);

}  // namespace latte
