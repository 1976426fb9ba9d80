#include "text/added_tokens.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte {
namespace {

Result<AddedToken> parse_added_token(const nlohmann::json& entry, const std::string& key, std::string_view file,
                                     std::int64_t max_id) {
  const auto id = entry.is_object() ? entry.find("id") : entry.end();
  const auto content = entry.is_object() ? entry.find("content") : entry.end();
  if (!entry.is_object() || content == entry.end() || !content->is_string() || id == entry.end() ||
      !id->is_number_integer()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}, expected an object with \"id\" and \"content\"", file, key);
  }
  AddedToken token;
  token.content = content->get<std::string>();
  const bool too_large = id->is_number_unsigned() && id->get<std::uint64_t>() > static_cast<std::uint64_t>(max_id);
  if (too_large || (!id->is_number_unsigned() && id->get<std::int64_t>() < 0)) {
    return fail(ErrorKind::kInvalidInput, "{}: {}.id {} of {}, expected 0 to {}", file, key, id->dump(),
                quote_for_error(token.content), max_id);
  }
  token.id = id->get<std::int32_t>();
  if (token.content.empty()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}.content is empty, expected the text of the token", file, key);
  }
  struct Flag {
    const char* name;
    bool* value;
  };
  for (const Flag& flag :
       {Flag{"special", &token.special}, Flag{"normalized", &token.normalized}, Flag{"lstrip", &token.lstrip},
        Flag{"rstrip", &token.rstrip}, Flag{"single_word", &token.single_word}}) {
    const auto value = json_bool(entry, flag.name, *flag.value, key, file);
    if (!value.ok()) return value.error();
    *flag.value = *value;
  }
  return token;
}

// Tokens as they are read: each id and each content once.
struct TokenList {
  TokenList(std::string_view source, std::int64_t largest) : file(source), max_id(largest) {}

  Status add(const nlohmann::json& entry, const std::string& key) {
    auto token = parse_added_token(entry, key, file, max_id);
    if (!token.ok()) return token.error();
    if (!ids.insert(token->id).second || !contents.insert(token->content).second) {
      return fail(ErrorKind::kInvalidInput, "{}: {} {} with id {} is given twice, expected each token and each id once",
                  file, key, quote_for_error(token->content), token->id);
    }
    tokens.push_back(std::move(*token));
    return {};
  }

  std::string_view file;
  std::int64_t max_id;
  std::vector<AddedToken> tokens;
  std::unordered_set<std::int32_t> ids;
  std::unordered_set<std::string> contents;
};

// A part of a token that ordinary words do not begin or end with: whole characters, one of them neither a letter, a
// digit nor white space of ASCII.
bool is_mark(std::string_view part) {
  return is_valid_utf8(part) && std::any_of(part.begin(), part.end(), [](char c) {
           return (static_cast<unsigned char>(c) & 0x80) != 0 || std::ispunct(static_cast<unsigned char>(c)) != 0;
         });
}

}  // namespace

Result<std::vector<AddedToken>> parse_added_tokens(const nlohmann::json& entry, std::string_view file,
                                                   std::int64_t max_id) {
  TokenList list(file, max_id);
  if (entry.is_null()) return std::move(list.tokens);
  if (!entry.is_array()) {
    return fail(ErrorKind::kInvalidInput, "{}: added_tokens is {}, expected a list", file,
                with_article(entry.type_name()));
  }
  for (const nlohmann::json& member : entry) {
    const Status added = list.add(member, fmt::format("added_tokens[{}]", list.tokens.size()));
    if (!added.ok()) return added.error();
  }
  return std::move(list.tokens);
}

Result<std::vector<AddedToken>> parse_added_tokens_decoder(const nlohmann::json& entry, std::string_view file,
                                                           std::int64_t max_id) {
  TokenList list(file, max_id);
  if (entry.is_null()) return std::move(list.tokens);
  if (!entry.is_object()) {
    return fail(ErrorKind::kInvalidInput, "{}: added_tokens_decoder is {}, expected an object", file,
                with_article(entry.type_name()));
  }
  for (const auto& [id, member] : entry.items()) {
    const bool digits = !id.empty() && id.size() <= 9 && id.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || !member.is_object()) {
      return fail(ErrorKind::kInvalidInput, "{}: added_tokens_decoder[{}], expected an id with an object", file,
                  quote_for_error(id));
    }
    nlohmann::json token = member;
    token["id"] = std::uint64_t{std::stoull(id)};
    const auto special = member.find("special");
    // A token that says nothing of it is matched before normalisation when it is special.
    if (!token.contains("normalized")) token["normalized"] = special == member.end() || *special != true;
    const Status added = list.add(token, fmt::format("added_tokens_decoder[{}]", quote_for_error(id)));
    if (!added.ok()) return added.error();
  }
  std::sort(list.tokens.begin(), list.tokens.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return std::move(list.tokens);
}

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
