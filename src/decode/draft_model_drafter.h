#pragma once

#include <utility>
#include <vector>

#include "decode/drafter.h"

namespace latte {

/// A small model with the target's vocabulary drafts. n drafts feed n inputs; of those the current token and the
/// accepted drafts stay in its cache, and what is missing (the last draft, when all were accepted; a prompt) is fed
/// first the next time. Its cache never holds more rows than the target's.
///
/// Where its own context is too short it starts again on a window, the last half-context of tokens as a prompt:
/// positions are then relative, which changes drafts and never the text.
class DraftModelDrafter final : public Drafter {
 public:
  /// `model` outlives the drafter; its vocabulary is the target's (checked id by id where both are opened).
  explicit DraftModelDrafter(Timeline& model) : model_(model) {}

  std::string_view name() const override { return "draft"; }
  int default_depth() const override { return 4; }
  Status observe(const Observation& seen) override;
  Result<std::span<const TokenId>> draft(const DraftRequest& request) override;
  Status rewind_to(int length) override;

  /// Which tokens the model's rows hold: tokens[first_token, first_token + rows) of the target's. With the content of
  /// its cache it is all that a drafter knows.
  struct Place {
    int first_token = 0;
    int rows = 0;
  };
  /// The place of the leading rows that hold `tokens`: later ones are drafts that were refused.
  Place place(std::span<const TokenId> tokens) const;
  /// After the model's cache was given rows that hold `fed`, from the target's token `first_token` on.
  void put_back(int first_token, std::vector<TokenId> fed) {
    first_token_ = first_token;
    fed_ = std::move(fed);
  }

 private:
  Status agree_with(std::span<const TokenId> tokens, int max_rows);
  Status cut_to(int rows);
  Result<StepResult> feed(std::span<const TokenId> ids);
  Status go_on(const DraftRequest& request, int max_drafts, StepResult last);

  Timeline& model_;
  int first_token_ = 0;       // index of the token in the model's row 0
  std::vector<TokenId> fed_;  // what the model's rows hold
  std::vector<TokenId> drafts_;
};

}  // namespace latte
