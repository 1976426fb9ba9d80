#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "api/session_access.h"
#include "latte/chat.h"

namespace latte::test {

/// What a conversation's surviving turns fed, so that a fresh session can be fed the same in the same steps.
class ChatLog {
 public:
  void said(const ChatReply& reply) {
    if (reply.kept_turn) runs_.push_back(reply.run);
  }
  void regenerated(const ChatReply& reply) {
    if (!reply.kept_turn) return;
    const int began = runs_.back().cached_tokens;  // the steps before the prompt's last one stayed
    runs_.back() = reply.run;
    runs_.back().cached_tokens = std::min(began, reply.run.cached_tokens);
  }
  void undone() { runs_.pop_back(); }
  void reset() { runs_.clear(); }
  const std::vector<GenerateResult>& runs() const { return runs_; }

  /// Feeds `fresh` the turns one by one; an empty text when it wrote every reply anew, else what differs.
  std::string replay(Session& fresh, const SamplingChoice& sampling) const {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const GenerateResult& run = runs_[i];
      if (Status rewound = fresh.rewind_to(run.cached_tokens); !rewound.ok()) return rewound.error().message;
      RunOptions options;
      options.max_tokens = static_cast<int>(run.ids.size());
      options.sampling = sampling;
      options.seed = run.seed;
      options.ignore_eos = true;
      const Result<GenerateResult> again = fresh.generate(run.prompt_ids, options);
      if (!again.ok()) return again.error().message;
      if (again->ids != run.ids) return "turn " + std::to_string(i + 1) + ": other ids";
    }
    return "";
  }

 private:
  std::vector<GenerateResult> runs_;
};

/// Every cached row of the main model, bit for bit.
inline std::vector<std::byte> cached_bits(Session& session) {
  return SessionAccess::state(session).sequence.cache().snapshot().bytes;
}

/// Logits of the last of `ids`, of which the session holds all others: it is fed as a generated row.
inline std::vector<float> last_logits(Session& session, std::span<const std::int32_t> ids) {
  SessionState& state = SessionAccess::state(session);
  if (!session.rewind_to(static_cast<int>(ids.size()) - 1).ok()) return {};
  const Result<StepResult> step = state.sequence.step(ids.last(1), Role::kGenerated, LogitsWanted::kLast);
  if (!step.ok()) return {};
  return {step->logits.row(0), step->logits.row(0) + step->logits.cols};
}

}  // namespace latte::test
