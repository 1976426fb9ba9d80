#pragma once

#include <cstdint>
#include <span>

#include "latte/error.h"
#include "plan/step_class.h"
#include "tensor/mat_ref.h"

namespace latte {

using TokenId = std::int32_t;

/// Which rows of a step need logits.
enum class LogitsWanted { kNone, kLast, kAll };

/// What a step leaves; valid until the next step of the same timeline.
struct StepResult {
  MatView<const float> logits;  ///< host memory; [0 | 1 | L, vocab] by LogitsWanted
  ConstMatRef hidden;  ///< device memory; [L, D], the rows after the final norm (an MTP layer: after shared_head.norm)
};

/// One sequence of one model: its caches and the length they hold. The decoding loop knows models only through this.
class Timeline {
 public:
  virtual ~Timeline() = default;

  virtual int length() const = 0;   ///< rows in the cache
  virtual int context() const = 0;  ///< most rows it may hold
  virtual int vocab() const = 0;

  /// Feeds ids at positions length() .. length() + L - 1. Fails without changing anything when they do not fit.
  virtual Result<StepResult> step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) = 0;

  virtual bool can_rewind_to(int length) const = 0;
  /// Drops rows, exactly; refuses (and changes nothing) what can_rewind_to denies.
  virtual Status rewind_to(int length) = 0;
};

/// The timeline of a multi-token-prediction layer. Row i pairs the target's hidden row i with token i + 1.
class MtpTimeline {
 public:
  virtual ~MtpTimeline() = default;

  virtual int length() const = 0;
  virtual int context() const = 0;

  /// Writes rows length() .. length() + L - 1 from next_ids (token i + 1 of each row) and hidden [L, D]. The result's
  /// hidden rows are what a chained draft step takes; `hidden` may be rows of an earlier result of this timeline.
  virtual Result<StepResult> step(std::span<const TokenId> next_ids, ConstMatRef hidden, Role role,
                                  LogitsWanted wanted) = 0;

  virtual Status rewind_to(int length) = 0;

  /// Owned copies of hidden rows that outlive the step which made them: a queue of at most kMaxKept rows in device
  /// memory.
  static constexpr int kMaxKept = 512;
  /// Appends rows to the queue. Errors: no memory; the queue is then as before.
  virtual Status keep(ConstMatRef hidden) = 0;
  virtual ConstMatRef kept() const = 0;              ///< [kept, D]
  virtual void drop_kept(int first, int count) = 0;  ///< remove rows [first, first + count)
};

}  // namespace latte
