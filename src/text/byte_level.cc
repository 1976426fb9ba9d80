#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace latte {
namespace {

constexpr int kTableChars = 0x100 + 68;  // Latin-1, then one character for each byte that is not printable

constexpr bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Tables {
  std::array<char32_t, 256> char_of_byte{};
  std::array<int, kTableChars> byte_of_char{};  // -1 for a character that stands for no byte
};

constexpr Tables make_tables() {
  Tables tables;
  tables.byte_of_char.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = is_printable(byte) ? static_cast<char32_t>(byte) : next++;
    tables.char_of_byte[byte] = character;
    tables.byte_of_char[character] = byte;
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

char32_t byte_level_char(unsigned char byte) { return kTables.char_of_byte[byte]; }

std::string byte_level_decode(std::string_view token) {
  std::string bytes;
  bytes.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Step step = decode_utf8(token, at);
    if (!step.valid || step.code_point >= kTableChars) return std::string(token);
    const int byte = kTables.byte_of_char[step.code_point];
    if (byte < 0) return std::string(token);
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(byte)));
    at += step.length;
  }
  return bytes;
}

std::string byte_level_encode(std::string_view bytes) {
  std::string token;
  token.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_utf8(token, byte_level_char(static_cast<unsigned char>(byte)));
  return token;
}

}  // namespace latte
