#include "text/added_tokens.h"

#include <algorithm>
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

}  // namespace latte
