#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latte/error.h"
#include "text/pattern.h"

namespace latte {

/// A token that stands outside BPE and matches as a whole, such as the marks of a chat template.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = false;      ///< control, not text: decoding may leave it out
  bool normalized = true;    ///< matched after normalisation rather than before
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< takes the white space after it along
  bool single_word = false;  ///< matches only where no word character touches it

  /// True for a mark within a turn, such as <think>, that is no control token: "<" or "</", letters or underscores,
  /// ">".
  bool is_tag() const;
};

/// Reads the `added_tokens` entry (null for none). Errors name the entry and its place: a missing or wrong member, an
/// id outside [0, `max_id`], an empty content, two entries with one id or one content.
Result<std::vector<AddedToken>> parse_added_tokens(const nlohmann::json& entry, std::string_view file,
                                                   std::int64_t max_id);

/// The same for the `added_tokens_decoder` of tokenizer_config.json, an object whose keys are the ids.
Result<std::vector<AddedToken>> parse_added_tokens_decoder(const nlohmann::json& entry, std::string_view file,
                                                           std::int64_t max_id);

/// Finds added tokens in text, the longest at each place first.
class AddedTokenMatcher {
 public:
  struct Match {
    TextSpan span;  ///< with the white space that the token strips
    std::int32_t id = 0;
  };

  void add(const AddedToken& token, std::string content);
  bool empty() const { return tokens_.empty(); }

  /// Adds the places of characters at which the spelling of a token begins, or may begin or end once another text
  /// stands beside this one. `keep_tags` leaves out tokens that are tags.
  void add_places(std::string_view text, bool keep_tags, std::vector<std::size_t>& places) const;

  /// Matches in a valid UTF-8 text, ascending, without overlap.
  std::vector<Match> find_all(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& length) const;

  std::unordered_map<std::string, AddedToken> tokens_;
  std::vector<bool> last_bytes_ = std::vector<bool>(256);  // true for a byte that a content ends with
  std::size_t longest_ = 0;
  std::vector<std::vector<std::size_t>> lengths_{256};  // by first byte: lengths of the contents, longest first
};

}  // namespace latte
