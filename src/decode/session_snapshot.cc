#include <utility>

#include "base/fail.h"
#include "decode/session.h"

namespace latte {

SessionContent SnapshotState::content() const {
  SessionContent content{.tokens = tokens,
                         .generated_from = generated_from,
                         .cache = cache.rows(),
                         .mtp = std::nullopt,
                         .draft = std::nullopt};
  if (mtp.has_value()) content.mtp = MtpContent{.cache = mtp->cache.rows(), .place = mtp->place, .kept = mtp->kept};
  if (draft.has_value()) content.draft = DraftContent{.cache = draft->cache.rows(), .first_token = draft->first_token};
  return content;
}

std::shared_ptr<const SnapshotState> SessionState::snapshot() const {
  const std::lock_guard<std::mutex> turn(model->busy);
  const auto taken = std::make_shared<SnapshotState>();
  taken->model = model;
  taken->tokens = tokens;
  taken->generated_from = generated_from;
  taken->cache = sequence.cache().snapshot();
  if (mtp_drafter != nullptr && mtp_state_is_whole()) {
    taken->mtp = MtpSnapshot{
        .cache = mtp_sequence->cache().snapshot(), .place = mtp_drafter->place(), .kept = mtp_sequence->kept_bytes()};
  }
  if (draft_drafter != nullptr) {
    const DraftModelDrafter::Place place = draft_drafter->place(fed_tokens());
    taken->draft =
        DraftSnapshot{.cache = draft_sequence->cache().snapshot(place.rows), .first_token = place.first_token};
  }
  return taken;
}

Status SessionState::restore(const SnapshotState& snapshot) {
  if (snapshot.model.owner_before(model) || model.owner_before(snapshot.model)) {
    return fail(ErrorKind::kInvalidInput,
                "[session] a snapshot of another engine's model, expected one of {}: read the prompt anew",
                model->info.model_directory);
  }
  return take_over(snapshot.content());
}

/// Whether the MTP layer's rows and queue hold together: after a call that failed they may not, and then a copy of them
/// serves nobody.
bool SessionState::mtp_state_is_whole() const {
  return MtpDrafter::holds_together(mtp_drafter->place(), mtp_sequence->length(),
                                    static_cast<int>(mtp_sequence->kept().rows), sequence.length());
}

std::span<const TokenId> SessionState::fed_tokens() const {
  return std::span<const TokenId>(tokens).first(static_cast<std::size_t>(sequence.length()));
}

/// Replaces everything. Room is made first, so that an error leaves the session as it was. A drafter without content
/// of its own reads what it needs from the tokens, or starts on a window.
Status SessionState::take_over(const SessionContent& content) {
  const std::lock_guard<std::mutex> turn(model->busy);
  const bool with_mtp = mtp_drafter != nullptr && content.mtp.has_value();
  const bool with_draft = draft_drafter != nullptr && content.draft.has_value();
  std::vector<TokenId> all(content.tokens.begin(), content.tokens.end());
  std::vector<TokenId> fed;
  if (Status room = sequence.cache().prepare(content.cache); !room.ok()) return room;
  if (with_mtp) {
    if (Status room = mtp_sequence->cache().prepare(content.mtp->cache); !room.ok()) return room;
    if (Status room = mtp_sequence->prepare_queue(); !room.ok()) return room;
  }
  if (with_draft) {
    if (Status room = draft_sequence->cache().prepare(content.draft->cache); !room.ok()) return room;
    const auto first = all.begin() + content.draft->first_token;
    fed.assign(first, first + content.draft->cache.length);
  }

  if (Status restored = sequence.cache().restore(content.cache); !restored.ok()) return restored;
  tokens = std::move(all);
  generated_from = content.generated_from;
  if (drafter == nullptr) return {};
  if (Status emptied = drafter->rewind_to(0); !emptied.ok()) return emptied;
  if (with_mtp) {
    if (Status restored = mtp_sequence->cache().restore(content.mtp->cache); !restored.ok()) return restored;
    mtp_sequence->restore_kept(content.mtp->kept);
    mtp_drafter->put_back(content.mtp->place);
  }
  if (with_draft) {
    if (Status restored = draft_sequence->cache().restore(content.draft->cache); !restored.ok()) return restored;
    draft_drafter->put_back(content.draft->first_token, std::move(fed));
  }
  return {};
}

}  // namespace latte
