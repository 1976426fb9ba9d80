#include "text/vocabulary.h"

#include <algorithm>

#include "base/fail.h"
#include "text/byte_level.h"
#include "text/json_text.h"

namespace latte {
namespace {

std::string with_spaces(std::string_view word) {
  std::string text;
  text.reserve(word.size());
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t space = std::min(word.find(kMetaspaceText, at), word.size());
    text.append(word, at, space - at);
    if (space < word.size()) text.push_back(' ');
    at = space + kMetaspaceText.size();
  }
  return text;
}

std::string bytes_of_word(std::string_view word, WordForm form) {
  switch (form) {
    case WordForm::kByteLevel:
      return byte_level_decode(word);
    case WordForm::kBytes:
      return std::string(word);
    case WordForm::kMetaspaceBytes:
      if (const auto byte = byte_of_word(word)) return std::string(1, static_cast<char>(*byte));
      break;
    case WordForm::kMetaspace:
      break;
  }
  return with_spaces(word);
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

std::optional<unsigned char> byte_of_word(std::string_view word) {
  if (word.size() != 6 || !word.starts_with("<0x") || word[5] != '>') return std::nullopt;
  const int high = hex_digit(word[3]);
  const int low = hex_digit(word[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<unsigned char>(16 * high + low);
}

Status Vocabulary::add_words(std::vector<std::pair<std::string, std::int64_t>> words, WordForm form,
                             std::string_view file, std::string_view source) {
  form_ = form;
  std::int64_t largest = -1;
  for (const auto& [word, id] : words) {
    if (id < 0 || id > kMaxTokenId) {
      return fail(ErrorKind::kInvalidInput, "{}: {}: id {} of token {}, expected 0 to {}", file, source, id,
                  quote_for_error(word), kMaxTokenId);
    }
    largest = std::max(largest, id);
  }
  entries_.resize(static_cast<std::size_t>(largest + 1));
  ids_.reserve(words.size() + 1024);
  for (auto& [word, wide_id] : words) {
    const auto id = static_cast<std::int32_t>(wide_id);
    if (entries_[id].present) {
      return fail(ErrorKind::kInvalidInput, "{}: {}: id {} of token {} belongs to another token already", file, source,
                  id, quote_for_error(word));
    }
    set_bytes(id, bytes_of_word(word, form));
    if (!ids_.try_emplace(std::move(word), id).second) {
      return fail(ErrorKind::kInvalidInput, "{}: {}: token {} is given twice", file, source,
                  quote_for_error(bytes(id)));
    }
  }
  return {};
}

Status Vocabulary::add_token(const AddedToken& token, std::string_view file) {
  const auto known = find(token.content);
  if (known.has_value() && *known != token.id) {
    return fail(ErrorKind::kInvalidInput, "{}: added_tokens: {} has id {}, but the vocabulary gives it id {}", file,
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
  const bool spaced = form_ == WordForm::kMetaspace || form_ == WordForm::kMetaspaceBytes;
  set_bytes(token.id, spaced ? with_spaces(token.content) : token.content);
  entries_[token.id].special = token.special;
  entries_[token.id].added = true;
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
