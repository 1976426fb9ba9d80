#include "decode/acceptance.h"

#include "base/contract.h"

namespace latte {

void accept_equal_choices(const VerifiedBlock& block, std::vector<TokenId>& emitted) {
  expects(block.logits.rows == static_cast<std::int64_t>(block.drafts.size()) + 1,
          "a verify step has a row per draft and one more");
  const TokenChooser::Trial trial(*block.chooser);
  for (std::size_t row = 0; row <= block.drafts.size(); ++row) {
    const std::span<const float> logits{block.logits.row(row), static_cast<std::size_t>(block.logits.cols)};
    const TokenId choice = block.chooser->choose(logits);
    emitted.push_back(choice);
    if (row < block.drafts.size() && block.drafts[row] != choice) return;
    block.chooser->push(choice);
  }
}

}  // namespace latte
