#pragma once

#include <string>
#include <string_view>

namespace latte {

/// The printable character that stands for a byte in the token strings of byte-level BPE (GPT-2's table): printable
/// Latin-1 bytes stand for themselves, the other 68 follow from U+0100 on.
char32_t byte_level_char(unsigned char byte);

/// The bytes a token string stands for. A string that holds any character outside the table (an added token) stands for
/// its own UTF-8 bytes.
std::string byte_level_decode(std::string_view token);

/// The token string of a run of bytes.
std::string byte_level_encode(std::string_view bytes);

}  // namespace latte
