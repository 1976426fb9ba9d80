#include "decode/mtp_drafter.h"

#include <algorithm>

#include "base/contract.h"

namespace latte {
namespace {

// A full queue gives up rows in batches, so that a long pause does not move the queue for every token.
constexpr int kRowsGivenUp = 64;

}  // namespace

Status MtpDrafter::observe(const Observation& seen) {
  const int rows = static_cast<int>(seen.hidden.rows);
  if (seen.first_row < kept_end()) {
    if (Status rewound = rewind_to(seen.first_row); !rewound.ok()) return rewound;
  }
  if (seen.first_row != kept_end()) {
    if (Status restarted = restart(seen.first_row); !restarted.ok()) return restarted;
  }
  for (int taken = 0; taken < rows;) {
    if (Status made = make_room(seen, rows - taken); !made.ok()) return made;
    const int count = std::min(rows - taken, MtpTimeline::kMaxKept - kept_count());
    if (Status kept = mtp_.keep(seen.hidden.rows_from(taken, count)); !kept.ok()) return kept;
    taken += count;
  }
  if (seen.parked || pending() <= kMaxDecodeRows) return {};
  const Result<StepResult> written = write(seen.tokens, pending() - 1, Role::kPrompt, LogitsWanted::kNone);
  return written.ok() ? Status{} : Status{written.error()};
}

/// Leaves room for at least one of `rows` rows that are about to come.
Status MtpDrafter::make_room(const Observation& seen, int rows) {
  if (kept_count() + rows <= MtpTimeline::kMaxKept) return {};
  int done = written_end() - kept_first_;
  if (done == 0 && kept_count() == MtpTimeline::kMaxKept) {
    if (seen.parked) {
      const int lost = std::min(kept_count(), std::max(rows, kRowsGivenUp));
      mtp_.drop_kept(0, lost);
      kept_first_ += lost;
      first_row_ = kept_first_;
      return mtp_.rewind_to(0);
    }
    // More rows follow, so the token after each of these is known.
    const Result<StepResult> written = write(seen.tokens, pending(), Role::kPrompt, LogitsWanted::kNone);
    if (!written.ok()) return written.error();
    done = written_end() - kept_first_;
  }
  if (done > 0) {
    mtp_.drop_kept(0, done);
    kept_first_ += done;
  }
  return {};
}

Result<std::span<const TokenId>> MtpDrafter::draft(const DraftRequest& request) {
  drafts_.clear();
  const bool at_the_end = static_cast<int>(request.tokens.size()) == kept_end() + 1;
  if (!at_the_end || pending() < 1 || request.max_drafts <= 0) return std::span<const TokenId>{};
  if (pending() > kMaxDecodeRows) {
    const Result<StepResult> refilled = write(request.tokens, pending() - 1, Role::kPrompt, LogitsWanted::kNone);
    if (!refilled.ok()) return refilled.error();
  }
  Result<StepResult> first = write(request.tokens, pending(), Role::kGenerated, LogitsWanted::kLast);
  if (!first.ok()) return first.error();

  const int rows = mtp_.length();
  const Status chained = chain(request, std::min(request.max_drafts, mtp_.context() - rows + 1), *first);
  if (mtp_.length() != rows) {
    if (Status dropped = mtp_.rewind_to(rows); !dropped.ok()) return dropped.error();
  }
  if (!chained.ok()) return chained.error();
  return std::span<const TokenId>{drafts_};
}

Status MtpDrafter::chain(const DraftRequest& request, int max_drafts, StepResult last) {
  const TokenChooser::Trial trial(*request.chooser);
  while (true) {
    drafts_.push_back(request.chooser->choose({last.logits.row(0), static_cast<std::size_t>(last.logits.cols)}));
    if (static_cast<int>(drafts_.size()) == max_drafts) return {};
    request.chooser->push(drafts_.back());
    const ConstMatRef hidden = last.hidden.rows_from(last.hidden.rows - 1, 1);
    Result<StepResult> next = mtp_.step({&drafts_.back(), 1}, hidden, Role::kGenerated, LogitsWanted::kLast);
    if (!next.ok()) return next.error();
    last = *next;
  }
}

/// Writes the next `count` rows: hidden row i of the target with token i + 1.
Result<StepResult> MtpDrafter::write(std::span<const TokenId> tokens, int count, Role role, LogitsWanted wanted) {
  const int first = written_end();
  expects(count > 0 && first >= kept_first_ && first + count <= kept_end(), "rows to write are in the queue");
  expects(static_cast<std::size_t>(first + count) < tokens.size(), "the token after each row to write is known");
  if (mtp_.length() + count > mtp_.context()) {
    if (Status emptied = mtp_.rewind_to(0); !emptied.ok()) return emptied.error();
    first_row_ = first;
  }
  return mtp_.step(tokens.subspan(first + 1, count), mtp_.kept().rows_from(first - kept_first_, count), role, wanted);
}

bool MtpDrafter::holds_together(Place place, int layer_rows, int kept_rows, int target_rows) {
  if (place.first_row < 0 || place.kept_first < 0 || layer_rows < 0 || kept_rows < 0) return false;
  const std::int64_t written_end = std::int64_t{place.first_row} + layer_rows;
  const std::int64_t kept_end = std::int64_t{place.kept_first} + kept_rows;
  return kept_rows <= MtpTimeline::kMaxKept && place.kept_first <= written_end && written_end <= kept_end &&
         kept_end <= target_rows;
}

Status MtpDrafter::rewind_to(int length) {
  expects(length >= 0, "a cache has no negative length");
  if (length < kept_end()) {
    const int stay = std::max(0, length - kept_first_);
    mtp_.drop_kept(stay, kept_count() - stay);
    if (stay == 0) kept_first_ = length;
  }
  // Row length - 1 holds a token that may now become another: it waits to be written again.
  const int rows_end = std::max(first_row_, length - 1);
  if (written_end() > rows_end) {
    if (Status rewound = mtp_.rewind_to(rows_end - first_row_); !rewound.ok()) return rewound;
  }
  return kept_count() == 0 && written_end() != length ? restart(length) : Status{};
}

/// Forgets everything: the layer's row 0 will be target row `row`.
Status MtpDrafter::restart(int row) {
  if (kept_count() > 0) mtp_.drop_kept(0, kept_count());
  kept_first_ = row;
  first_row_ = row;
  return mtp_.rewind_to(0);
}

}  // namespace latte
