#pragma once

#include <span>
#include <string_view>

#include "decode/token_chooser.h"
#include "model/timeline.h"

namespace latte {

/// Rows that the target has just kept: the first `first_row + hidden.rows` rows of its cache are the first of `tokens`.
struct Observation {
  std::span<const TokenId> tokens;  ///< prompt and emitted tokens, the newest included
  int first_row = 0;                ///< the step's kept rows are [first_row, first_row + hidden.rows)
  ConstMatRef hidden;               ///< [kept rows, D] of the target, valid during the call
  bool parked = false;              ///< no drafts are being asked for: keep what a later start needs, compute nothing
};

struct DraftRequest {
  std::span<const TokenId> tokens;  ///< prompt and emitted tokens; the last one has not been fed to the target
  int max_drafts = 0;
  /// The target's rule, standing at the first draft's place: the drafter lets it choose from logits of its own, so with
  /// the same noise, bias and penalties. It stands there again afterwards.
  TokenChooser* chooser = nullptr;
};

/// Guesses the next tokens. Drafts change only the speed: the target's own choice is always what is emitted.
/// After a failed call the drafter is still in a state from which it can go on.
class Drafter {
 public:
  virtual ~Drafter() = default;

  virtual std::string_view name() const = 0;
  virtual int default_depth() const = 0;

  /// Told after every step of the target, prompt steps included, which rows stayed.
  virtual Status observe(const Observation& seen) = 0;
  /// At most max_drafts tokens; fewer, or none, when nothing is worth proposing. Valid until the next call.
  virtual Result<std::span<const TokenId>> draft(const DraftRequest& request) = 0;
  /// The target was rewound to `length` rows: the tokens of those rows stay, what follows them may become different.
  virtual Status rewind_to(int length) = 0;
};

}  // namespace latte
