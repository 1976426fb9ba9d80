#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "latte/error.h"

namespace latte {

/// Rare characters that take the place of others in a text, one for one, so that added tokens do not match there. A
/// template may cut such a text anywhere: what is left of it still matches nothing.
class StandIns {
 public:
  /// Remembers the characters of `text`: none of them will be a stand-in. Before the first `hide`.
  void avoid(std::string_view text);

  /// `text`, valid UTF-8, with stand-ins for the characters that begin at `places` (ascending). Errors: no character is
  /// left to stand in.
  Result<std::string> hide(std::string_view text, const std::vector<std::size_t>& places);

  /// `text` with the characters themselves in place of their stand-ins.
  std::string reveal(std::string_view text) const;

  /// Every stand-in in use, as a text.
  std::string all() const;

  bool empty() const { return originals_.empty(); }

 private:
  Result<char32_t> stand_in(char32_t original);

  std::vector<bool> taken_;                           // by distance from the first candidate
  std::size_t next_ = 0;                              // candidates before it are used up
  std::unordered_map<char32_t, char32_t> stand_ins_;  // by original
  std::unordered_map<char32_t, char32_t> originals_;  // by stand-in
};

}  // namespace latte
