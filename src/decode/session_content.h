#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "decode/draft_model_drafter.h"
#include "decode/mtp_drafter.h"
#include "kv/latent_cache.h"

namespace latte {

/// What the MTP drafter holds, as views.
struct MtpContent {
  LatentRows cache;
  MtpDrafter::Place place;
  std::span<const std::byte> kept;  ///< hidden rows of the queue, MtpSequence::kept_bytes()
};

/// What a draft model's drafter holds, as views.
struct DraftContent {
  LatentRows cache;
  int first_token = 0;  ///< the rows hold the session's tokens from here on
};

/// All that a session holds, as views of a snapshot or of a mapped file. Lookup and no drafter need the tokens alone.
struct SessionContent {
  std::span<const TokenId> tokens;  ///< fed ones first, then perhaps one that was emitted and not fed
  int generated_from = 0;           ///< tokens from here on were generated
  LatentRows cache;
  std::optional<MtpContent> mtp;
  std::optional<DraftContent> draft;
};

}  // namespace latte
