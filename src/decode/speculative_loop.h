#pragma once

#include <functional>
#include <span>
#include <vector>

#include "decode/acceptance.h"
#include "decode/decode_stats.h"
#include "decode/depth_controller.h"
#include "decode/drafter.h"
#include "decode/sampler.h"
#include "decode/token_chooser.h"
#include "latte/error.h"
#include "model/timeline.h"

namespace latte {

/// Why a text ended: on a stop token or at the caller's word, at a limit (max_tokens, context), or cancelled.
enum class FinishReason { kStop, kLength, kCancelled };

/// The caller's word after a token or a prompt step.
enum class Proceed {
  kGoOn,
  kStop,    ///< the text is complete (a stop string): finish reason stop
  kCancel,  ///< nobody wants the rest: finish reason cancelled
};

struct GenerateOptions {
  int max_tokens = -1;  ///< -1: until the context is full
  int depth = -1;       ///< drafts per round, at most kMaxDrafts; 0: plain decoding; -1: the drafter's default
  DepthController* control = nullptr;      ///< chooses the depth of every round, at most `depth`; null: always `depth`
  std::span<const TokenId> stop_ids = {};  ///< each ends the text and is emitted as its last token
  int prompt_step_rows = 512;              ///< rows of one prompt step
  /// Tokens from this index on were written by an earlier run over the same cache. What of them is not yet in the cache
  /// is fed as generated rows, so that a run in two parts gives the bits of one run. -1: all tokens are prompt.
  int first_generated = -1;
  AcceptRule accept = accept_equal_choices;
};

/// A token that has just become part of the text.
struct Emission {
  TokenId token = 0;
  std::span<const float> logits;  ///< [vocab] of the row that chose it, as the model gave them; valid during the call
};

struct GenerateRequest {
  Timeline& target;            ///< holds rows of the first length() of `tokens`
  Drafter* drafter = nullptr;  ///< null: plain decoding
  const Sampler& sampler;
  LogitRules rules = {};         ///< that have passed check_logit_rules
  std::vector<TokenId>& tokens;  ///< the prompt, at least one token; emitted tokens are appended
  GenerateOptions options = {};
  /// After each emitted token; may be empty.
  std::function<Proceed(const Emission&)> on_token = {};
  /// After each prompt step but the last: rows done, rows in all; may be empty. A long prompt is cancelled here.
  std::function<Proceed(int, int)> on_prompt_rows = {};
};

struct Generation {
  FinishReason finish_reason = FinishReason::kLength;
  DecodeStats stats;
};

/// Decodes: reads what the cache lacks of the prompt, then rounds of draft, verify, accept, emit and rewind. The
/// emitted tokens are those of plain decoding for every drafter and depth (an `accept` of the caller's aside). Bias and
/// penalties act at every position on the tokens before it, drafts of the same step included; what this call emits is
/// what counts as generated, whoever wrote the prompt.
///
/// When at least one token was emitted the target holds exactly prompt + emitted - 1 rows on return: all tokens but the
/// last. The same holds after an error, where the tokens emitted so far stay in `tokens` and the call may be repeated;
/// should the target refuse a rewind it is emptied instead. A run that ends before its first token leaves at most
/// prompt - 1 rows.
///
/// Speculation changes no outcome either: NaN or infinity in the row of a draft drops the drafts of that round, in the
/// drafter its guesses; only a row that plain decoding would compute is an error (kNumeric).
///
/// The context ends the text when every row is used: a prompt of P tokens yields at most context - P + 1.
Result<Generation> generate(const GenerateRequest& request);

}  // namespace latte
