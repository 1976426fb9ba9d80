#include "decode/draft_model_drafter.h"

#include <algorithm>

#include "base/contract.h"

namespace latte {
namespace {

constexpr int kPromptStepRows = 512;

}  // namespace

Status DraftModelDrafter::observe(const Observation& seen) {
  return agree_with(seen.tokens, seen.first_row + static_cast<int>(seen.hidden.rows));
}

Status DraftModelDrafter::rewind_to(int length) {
  expects(length >= 0, "a cache has no negative length");
  return cut_to(std::max(0, length - first_token_));
}

DraftModelDrafter::Place DraftModelDrafter::place(std::span<const TokenId> tokens) const {
  if (static_cast<std::size_t>(first_token_) > tokens.size()) return {};
  const std::span<const TokenId> window = tokens.subspan(static_cast<std::size_t>(first_token_));
  const auto differing = std::mismatch(fed_.begin(), fed_.end(), window.begin(), window.end()).first;
  const int rows = std::min(static_cast<int>(differing - fed_.begin()), model_.length());
  return rows == 0 ? Place{} : Place{first_token_, rows};
}

Result<std::span<const TokenId>> DraftModelDrafter::draft(const DraftRequest& request) {
  drafts_.clear();
  const int tokens = static_cast<int>(request.tokens.size());
  if (tokens == 0 || request.max_drafts <= 0) return std::span<const TokenId>{};
  // The current token is always fed anew: its row gives the first draft.
  if (Status agreed = agree_with(request.tokens, tokens - 1); !agreed.ok()) return agreed.error();

  if (tokens - first_token_ + request.max_drafts - 1 > model_.context()) {
    if (Status emptied = cut_to(0); !emptied.ok()) return emptied.error();
    first_token_ = std::max(0, tokens - std::max(1, model_.context() / 2));
  }
  const int max_drafts = std::min(request.max_drafts, model_.context() - (tokens - first_token_) + 1);
  // A target may have rows past its tokenizer's ids, and the draft model fewer of them.
  const std::span<const TokenId> waiting = request.tokens.subspan(first_token_ + fed_.size());
  const auto unknown = [&](TokenId id) { return id >= model_.vocab(); };
  if (std::any_of(waiting.begin(), waiting.end(), unknown)) return std::span<const TokenId>{};
  Result<StepResult> last = feed(waiting);
  if (!last.ok()) return last.error();
  if (Status chained = go_on(request, max_drafts, *last); !chained.ok()) return chained.error();
  return std::span<const TokenId>{drafts_};
}

Status DraftModelDrafter::go_on(const DraftRequest& request, int max_drafts, StepResult last) {
  const TokenChooser::Trial trial(*request.chooser);
  while (true) {
    drafts_.push_back(request.chooser->choose({last.logits.row(0), static_cast<std::size_t>(last.logits.cols)}));
    if (static_cast<int>(drafts_.size()) == max_drafts) return {};
    request.chooser->push(drafts_.back());
    Result<StepResult> next = feed({&drafts_.back(), 1});
    if (!next.ok()) return next.error();
    last = *next;
  }
}

/// Feeds ids and gives the logits of the last one.
Result<StepResult> DraftModelDrafter::feed(std::span<const TokenId> ids) {
  const Role role = ids.size() > static_cast<std::size_t>(kMaxDecodeRows) ? Role::kPrompt : Role::kGenerated;
  while (true) {
    const std::span<const TokenId> part = ids.first(std::min<std::size_t>(ids.size(), kPromptStepRows));
    ids = ids.subspan(part.size());
    Result<StepResult> step = model_.step(part, role, ids.empty() ? LogitsWanted::kLast : LogitsWanted::kNone);
    if (!step.ok()) return step.error();
    fed_.insert(fed_.end(), part.begin(), part.end());
    if (ids.empty()) return step;
  }
}

/// Keeps the rows that hold `tokens`, at most as many as the first `max_rows` tokens need.
Status DraftModelDrafter::agree_with(std::span<const TokenId> tokens, int max_rows) {
  const std::size_t known = std::min(tokens.size(), static_cast<std::size_t>(max_rows));
  const std::span<const TokenId> window =
      tokens.first(known).subspan(std::min(known, static_cast<std::size_t>(first_token_)));
  const auto differing = std::mismatch(fed_.begin(), fed_.end(), window.begin(), window.end()).first;
  return cut_to(static_cast<int>(differing - fed_.begin()));
}

Status DraftModelDrafter::cut_to(int rows) {
  // A step that failed may have left rows behind: only those that both sides know count.
  const int known = std::min(static_cast<int>(fed_.size()), model_.length());
  rows = std::min(rows, known);
  if (rows < model_.length()) {
    if (!model_.can_rewind_to(rows)) rows = 0;
    if (Status rewound = model_.rewind_to(rows); !rewound.ok()) return rewound;
  }
  fed_.resize(rows);
  if (rows == 0) first_token_ = 0;
  return {};
}

}  // namespace latte
