#include <algorithm>
#include <cctype>
#include <functional>

#include "text/added_tokens.h"
#include "text/utf8.h"

// Finding added tokens in text; added_tokens.cc reads them.

namespace latte {
namespace {

// A part of a token that ordinary words do not begin or end with: whole characters, one of them neither a letter, a
// digit nor white space of ASCII.
bool is_mark(std::string_view part) {
  return is_valid_utf8(part) && std::any_of(part.begin(), part.end(), [](char c) {
           return (static_cast<unsigned char>(c) & 0x80) != 0 || std::ispunct(static_cast<unsigned char>(c)) != 0;
         });
}

}  // namespace

bool AddedToken::is_tag() const {
  std::string_view name = content;
  if (special || name.size() < 3 || name.front() != '<' || name.back() != '>') return false;
  name = name.substr(1, name.size() - 2);
  if (name.starts_with('/')) name.remove_prefix(1);
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

void AddedTokenMatcher::add(const AddedToken& token, std::string content) {
  if (content.empty()) return;
  auto& lengths = lengths_[static_cast<unsigned char>(content[0])];
  if (std::find(lengths.begin(), lengths.end(), content.size()) == lengths.end()) {
    lengths.push_back(content.size());
    std::sort(lengths.begin(), lengths.end(), std::greater<>());
  }
  last_bytes_[static_cast<unsigned char>(content.back())] = true;
  longest_ = std::max(longest_, content.size());
  tokens_.emplace(std::move(content), token);
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t at, std::size_t& length) const {
  for (const std::size_t candidate : lengths_[static_cast<unsigned char>(text[at])]) {
    if (candidate > text.size() - at) continue;
    const auto found = tokens_.find(std::string(text.substr(at, candidate)));
    if (found == tokens_.end()) continue;
    length = candidate;
    return &found->second;
  }
  return nullptr;
}

void AddedTokenMatcher::add_places(std::string_view text, bool keep_tags, std::vector<std::size_t>& places) const {
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
      if (length > text.size() - at) continue;
      const auto found = tokens_.find(std::string(text.substr(at, length)));
      if (found == tokens_.end() || (keep_tags && found->second.is_tag())) continue;
      places.push_back(at);
      break;
    }
  }
  const auto any = [&](auto matches) {
    return std::any_of(tokens_.begin(), tokens_.end(), [&](const auto& entry) {
      return !(keep_tags && entry.second.is_tag()) && matches(std::string_view(entry.first));
    });
  };
  const std::size_t longest = std::min(text.size(), longest_);
  for (std::size_t size = 1; size <= longest; ++size) {
    const std::string_view tail = text.substr(text.size() - size);
    if (!lengths_[static_cast<unsigned char>(tail.front())].empty() && is_mark(tail) &&
        any([&](std::string_view content) { return content.size() > size && content.starts_with(tail); })) {
      places.push_back(text.size() - size);
    }
    const std::string_view head = text.substr(0, size);
    if (last_bytes_[static_cast<unsigned char>(head.back())] && is_mark(head) &&
        any([&](std::string_view content) { return content.size() > size && content.ends_with(head); })) {
      places.push_back(previous_code_point(text, size));
    }
  }
}

std::vector<AddedTokenMatcher::Match> AddedTokenMatcher::find_all(std::string_view text) const {
  std::vector<Match> matches;
  std::size_t taken = 0;  // end of the last match with what it stripped
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = 1;
    const AddedToken* token = longest_at(text, at, length);
    const std::size_t begin_of_token = at;
    at += length;
    if (token == nullptr || begin_of_token < taken) continue;
    TextSpan span{begin_of_token, at};
    if (token->single_word) {
      const bool word_before =
          span.begin > 0 && is_word(decode_utf8(text, previous_code_point(text, span.begin)).code_point);
      const bool word_after = span.end < text.size() && is_word(decode_utf8(text, span.end).code_point);
      if (word_before || word_after) continue;
    }
    while (token->lstrip && span.begin > taken) {
      const std::size_t previous = previous_code_point(text, span.begin);
      if (!is_space(decode_utf8(text, previous).code_point)) break;
      span.begin = previous;
    }
    while (token->rstrip && span.end < text.size()) {
      const Utf8Step next = decode_utf8(text, span.end);
      if (!is_space(next.code_point)) break;
      span.end += next.length;
    }
    matches.push_back({span, token->id});
    taken = span.end;
  }
  return matches;
}

}  // namespace latte
