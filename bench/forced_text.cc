#include "forced_text.h"

#include <fstream>
#include <iterator>

#include "base/fail.h"

namespace latte::bench {

Result<StepResult> ForcedTextTimeline::step(std::span<const TokenId> ids, Role role, LogitsWanted wanted) {
  const int first = inner_.length();
  Result<StepResult> result = inner_.step(ids, role, wanted);
  if (!result.ok() || result->logits.rows == 0) return result;
  const MatView<const float> logits = result->logits;
  logits_.assign(logits.data, logits.data + logits.rows * logits.cols);
  const std::int64_t skipped = static_cast<std::int64_t>(ids.size()) - logits.rows;
  for (std::int64_t row = 0; row < logits.rows; ++row) {
    const auto next = static_cast<std::size_t>(first + skipped + row + 1);
    if (next < text_.size()) logits_[static_cast<std::size_t>(row * logits.cols + text_[next])] = 1e30f;
  }
  return StepResult{{logits_.data(), logits.rows, logits.cols, logits.cols}, result->hidden};
}

Result<std::vector<std::vector<TokenId>>> read_documents(const Tokenizer& tokenizer, const std::string& path,
                                                         std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorKind::kNotFound, "{}: cannot be opened, expected a text file", path);
  const std::string all((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::vector<TokenId>> documents;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\0', at), all.size());
    auto ids = tokenizer.encode(std::string_view(all).substr(at, end - at), {.match_special = false, .add_bos = true});
    if (!ids.ok()) return ids.error();
    if (ids->size() > most) ids->resize(most);
    if (ids->size() > 1) documents.push_back(std::move(*ids));
    at = end + 1;
  }
  return documents;
}

}  // namespace latte::bench
