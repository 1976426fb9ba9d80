#include "text/vocabulary.h"

#include <algorithm>

#include "base/fail.h"
#include "text/byte_level.h"
#include "text/json_text.h"

namespace latte {

Status Vocabulary::add_words(std::vector<std::pair<std::string, std::int64_t>> words, std::string_view file) {
  std::int64_t largest = -1;
  for (const auto& [word, id] : words) {
    if (id < 0 || id > kMaxTokenId) {
      return fail(ErrorKind::kInvalidInput, "{}: model.vocab: id {} of token {}, expected 0 to {}", file, id,
                  quote_for_error(word), kMaxTokenId);
    }
    largest = std::max(largest, id);
  }
  entries_.resize(static_cast<std::size_t>(largest + 1));
  ids_.reserve(words.size() + 1024);
  for (auto& [word, wide_id] : words) {
    const auto id = static_cast<std::int32_t>(wide_id);
    if (entries_[id].present) {
      return fail(ErrorKind::kInvalidInput, "{}: model.vocab: id {} of token {} belongs to another token already", file,
                  id, quote_for_error(word));
    }
    set_bytes(id, byte_level_decode(word));
    if (!ids_.try_emplace(std::move(word), id).second) {
      return fail(ErrorKind::kInvalidInput, "{}: model.vocab: token {} is given twice", file,
                  quote_for_error(bytes(id)));
    }
  }
  return {};
}

Status Vocabulary::add_token(const AddedToken& token, std::string_view file) {
  const auto known = find(token.content);
  if (known.has_value() && *known != token.id) {
    return fail(ErrorKind::kInvalidInput, "{}: added_tokens: {} has id {}, but model.vocab gives it id {}", file,
                quote_for_error(token.content), token.id, *known);
  }
  if (!known.has_value()) {
    if (contains(token.id)) {
      return fail(ErrorKind::kInvalidInput, "{}: added_tokens: id {} of {} belongs to token {} already", file, token.id,
                  quote_for_error(token.content), quote_for_error(bytes(token.id)));
    }
    if (token.id >= size()) entries_.resize(static_cast<std::size_t>(token.id) + 1);
    ids_.emplace(token.content, token.id);
  }
  set_bytes(token.id, token.content);
  entries_[token.id].special = token.special;
  return {};
}

std::optional<std::int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::string_view Vocabulary::bytes(std::int32_t id) const {
  if (!contains(id)) return {};
  return std::string_view(pool_).substr(entries_[id].offset, entries_[id].length);
}

void Vocabulary::set_bytes(std::int32_t id, std::string_view bytes) {
  Entry& entry = entries_[id];
  entry.offset = pool_.size();
  entry.length = static_cast<std::uint32_t>(bytes.size());
  entry.present = true;
  pool_.append(bytes);
}

}  // namespace latte
