#pragma once

#include <span>
#include <vector>

#include "decode/token_chooser.h"
#include "model/timeline.h"

namespace latte {

/// What a verify step leaves for judgement. Row i of the logits follows the current token (i = 0) or draft i - 1.
struct VerifiedBlock {
  MatView<const float> logits;      ///< [drafts + 1, vocab]
  std::span<const TokenId> drafts;  ///< may be empty: a plain step
  TokenChooser* chooser = nullptr;  ///< stands at the token that row 0 predicts, and stands there again afterwards
};

/// Appends the tokens that the block yields to `emitted`: the accepted drafts and one more, at least one in all.
using AcceptRule = void (*)(const VerifiedBlock& block, std::vector<TokenId>& emitted);

/// The exact rule: at each row the target's own choice is emitted, and the next row counts only while the draft there
/// equals it. What is emitted is what plain decoding would have emitted, whatever the drafts were.
void accept_equal_choices(const VerifiedBlock& block, std::vector<TokenId>& emitted);

}  // namespace latte
