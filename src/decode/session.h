#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/open_model.h"
#include "decode/prompt_cache.h"
#include "decode/session_content.h"
#include "decode/speculative_loop.h"
#include "latte/session.h"
#include "model/sequence.h"

namespace latte {

/// The MTP layer's part of a snapshot.
struct MtpSnapshot {
  LatentSnapshot cache;
  MtpDrafter::Place place;
  std::vector<std::byte> kept;
};

/// The draft model's part of a snapshot.
struct DraftSnapshot {
  LatentSnapshot cache;
  int first_token = 0;
};

/// What a Snapshot shares: the owner of a SessionContent.
struct SnapshotState {
  std::weak_ptr<const OpenModel> model;  ///< whose rows these are
  std::vector<TokenId> tokens;
  int generated_from = 0;
  LatentSnapshot cache;
  std::optional<MtpSnapshot> mtp;
  std::optional<DraftSnapshot> draft;

  SessionContent content() const;
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
  /// As Session::save and Session::load say.
  Status save(const std::string& path, std::string_view note) const;
  static Status check_save(const std::string& path);
  Result<std::string> load(const std::string& path, CacheFileReport& report);
  PathCounts paths() const;
  void watch_steps(StepCallback on_step);

  std::shared_ptr<OpenModel> model;
  SpecType spec = SpecType::kNone;
  int depth = 0;                           ///< most drafts per round
  std::optional<DepthController> control;  ///< where rounds choose; it learns over all turns
  std::vector<TokenId> tokens;             ///< the caches hold the first sequence.length() of them
  int generated_from = 0;                  ///< tokens from here on were generated
  ModelSequence sequence;
  std::optional<MtpSequence> mtp_sequence;
  std::optional<ModelSequence> draft_sequence;
  std::unique_ptr<Drafter> drafter;
  MtpDrafter* mtp_drafter = nullptr;           ///< `drafter` where it is one
  DraftModelDrafter* draft_drafter = nullptr;  ///< the same

 private:
  SessionState(std::shared_ptr<OpenModel> opened, SpecType chosen, int most_drafts);
  Status cut_to(int length);
  Status keep_common_prefix(std::span<const TokenId> prompt);
  Status check_prompt(std::span<const TokenId> prompt) const;
  Result<int> begin_with(std::span<const TokenId> prompt);
  Status take_over(const SessionContent& content);
  bool mtp_state_is_whole() const;
  std::span<const TokenId> fed_tokens() const;
  std::vector<std::byte> kept_bytes() const;
  std::string match_drafter(const PromptCache& file, SessionContent& content) const;
  PromptCacheHeader describe() const;
};

}  // namespace latte
