#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decode/mtp_drafter.h"
#include "decode/open_model.h"
#include "decode/speculative_loop.h"
#include "latte/session.h"
#include "model/sequence.h"

namespace latte {

/// The MTP layer's part of a snapshot.
struct MtpSnapshot {
  LatentSnapshot cache;
  MtpDrafter::Place place;
  int kept_rows = 0;
  std::vector<float> kept;  ///< [kept_rows, D] hidden rows of the drafter's queue
};

/// What a Snapshot shares.
struct SnapshotState {
  std::weak_ptr<const OpenModel> model;  ///< whose rows these are
  std::vector<TokenId> tokens;           ///< fed ones first, then perhaps one that was emitted and not fed
  int generated_from = 0;
  LatentSnapshot cache;
  std::optional<MtpSnapshot> mtp;  ///< of a session that drafts with it; other drafters find their way from the tokens
};

/// One timeline of one open model: the main model's caches, the drafter with its own, and the tokens they hold.
/// Public Session is a thin cover. One thread at a time; takes the device for the length of a call.
struct SessionState {
  /// Errors: a drafter that is not there, a depth out of range.
  static Result<std::unique_ptr<SessionState>> open(std::shared_ptr<OpenModel> model, const SessionOptions& options);

  Result<GenerateResult> run(std::span<const TokenId> prompt, const RunOptions& options, const TokenCallback& on_token,
                             const PromptCallback& on_prompt);
  Status logits(std::span<const TokenId> ids, const LogitsOptions& options, const LogitsSink& on_main,
                const LogitsSink& on_mtp);
  Status rewind_to(int length);
  std::shared_ptr<const SnapshotState> snapshot() const;
  Status restore(const SnapshotState& snapshot);
  PathCounts paths() const;
  void watch_steps(StepCallback on_step);

  std::shared_ptr<OpenModel> model;
  SpecType spec = SpecType::kNone;
  int depth = 0;                ///< most drafts per round
  std::vector<TokenId> tokens;  ///< the caches hold the first sequence.length() of them
  int generated_from = 0;       ///< tokens from here on were generated
  ModelSequence sequence;
  std::optional<MtpSequence> mtp_sequence;
  std::optional<ModelSequence> draft_sequence;
  std::unique_ptr<Drafter> drafter;
  MtpDrafter* mtp_drafter = nullptr;  ///< `drafter` where it is one

 private:
  SessionState(std::shared_ptr<OpenModel> opened, SpecType chosen, int most_drafts);
  Status cut_to(int length);
  Status keep_common_prefix(std::span<const TokenId> prompt);
  MtpSnapshot mtp_snapshot() const;
  Status restore_drafter(const SnapshotState& snapshot);
};

}  // namespace latte
