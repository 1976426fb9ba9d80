#pragma once

#include <vector>

#include "decode/drafter.h"

namespace latte {

/// The multi-token-prediction layer drafts. With C rows in the target's cache its own holds C - 1 before the first
/// draft step and C after it: row C - 1 pairs the target's hidden row C - 1 with the current token. Chained steps feed
/// the layer's own hidden row with the token just drafted; their rows are dropped at once, and accepted positions are
/// written again from the target's hidden rows in one step with the next first draft.
///
/// Rows that the target kept and that are not yet written wait in the timeline's queue. A prompt is written as it is
/// read, all but its last row. While parked nothing is computed and the newest rows are kept, at most kMaxKept.
///
/// A gap (rows whose hidden state is gone: a cache that came without them, a rewind further back than the queue
/// reaches, a long pause) cannot be filled. The layer then starts again on a window: its row 0 is the first row after
/// the gap, and its positions are relative. Drafting goes on at once with a shorter memory; the text is the target's
/// either way.
class MtpDrafter final : public Drafter {
 public:
  /// `mtp` outlives the drafter and is empty.
  explicit MtpDrafter(MtpTimeline& mtp) : mtp_(mtp) {}

  std::string_view name() const override { return "mtp"; }
  int default_depth() const override { return 1; }
  Status observe(const Observation& seen) override;
  Result<std::span<const TokenId>> draft(const DraftRequest& request) override;
  Status rewind_to(int length) override;

  /// Target row behind the layer's row 0; past 0 only after a gap.
  int window_start() const { return first_row_; }

  /// Where the layer's rows and the queue lie among the target's rows. With the contents of both it is all that a
  /// drafter knows: a snapshot keeps it and puts it back after putting back the contents.
  struct Place {
    int first_row = 0;
    int kept_first = 0;
  };
  Place place() const { return {first_row_, kept_first_}; }
  /// Whether a layer of `layer_rows` rows and a queue of `kept_rows` can lie so among `target_rows` of the target: the
  /// layer's end is within the queue, the queue's within the target.
  static bool holds_together(Place place, int layer_rows, int kept_rows, int target_rows);
  void put_back(Place place) {
    first_row_ = place.first_row;
    kept_first_ = place.kept_first;
  }

 private:
  int kept_count() const { return static_cast<int>(mtp_.kept().rows); }
  int kept_end() const { return kept_first_ + kept_count(); }
  int written_end() const { return first_row_ + mtp_.length(); }
  int pending() const { return kept_end() - written_end(); }

  Result<StepResult> write(std::span<const TokenId> tokens, int count, Role role, LogitsWanted wanted);
  Status make_room(const Observation& seen, int rows);
  Status restart(int row);
  Status chain(const DraftRequest& request, int max_drafts, StepResult last);

  MtpTimeline& mtp_;
  int first_row_ = 0;   // target row of the layer's row 0
  int kept_first_ = 0;  // target row of the queue's oldest row; written rows stay in it for rewinds while there is room
  std::vector<TokenId> drafts_;
};

}  // namespace latte
