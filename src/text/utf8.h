#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace latte {

/// What stands at one place of a byte string read as UTF-8.
struct Utf8Step {
  char32_t code_point = 0xFFFD;
  std::size_t length = 1;   ///< bytes taken: the whole sequence, or the maximal subpart of an ill-formed one
  bool valid = false;       ///< a well-formed sequence (no surrogates, no overlong forms, at most U+10FFFF)
  bool incomplete = false;  ///< not valid, but the text ends before it could become so
};

/// Reads the sequence that starts at byte `at` (< text.size()). An ill-formed one takes its maximal subpart, as the
/// Unicode standard recommends and Python's errors="replace" does.
Utf8Step decode_utf8(std::string_view text, std::size_t at);

/// Appends the UTF-8 form of a code point; a surrogate or a number above U+10FFFF becomes U+FFFD.
void append_utf8(std::string& out, char32_t code_point);

/// The text with one U+FFFD for every maximal subpart of an ill-formed sequence.
std::string replace_invalid_utf8(std::string_view text);

/// True when every sequence of the text is well formed.
bool is_valid_utf8(std::string_view text);

/// Number of code points of a valid UTF-8 text.
std::size_t count_code_points(std::string_view text);

/// Byte offset of code point `index` of a valid UTF-8 text; text.size() when there are not so many.
std::size_t code_point_offset(std::string_view text, std::size_t index);

/// Start of the code point that ends at byte `end` (> 0) of a valid UTF-8 text.
std::size_t previous_code_point(std::string_view text, std::size_t end);

/// Unicode White_Space, plus U+001C..U+001F as Python's str.isspace has them when `python` is set.
bool is_space(char32_t code_point, bool python = false);

/// A character of a word in the sense of the regular expression \w: letters, marks, numbers, connectors, joiners.
bool is_word(char32_t code_point);

}  // namespace latte
