#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace latte::test {

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string repo_data(const std::string& name) { return std::string(LATTE_SOURCE_DIR "/tests/data/") + name; }

inline nlohmann::ordered_json repo_json(const std::string& name) {
  return nlohmann::ordered_json::parse(read_file(repo_data(name)));
}

/// The folder of larger data, or empty when LATTE_TEST_DATA is not set.
inline std::string large_data_root() {
  const char* root = std::getenv("LATTE_TEST_DATA");
  return root == nullptr ? "" : root;
}

/// The text of a golden's entry: as it is, or bytes in hexadecimal where they are no UTF-8.
inline std::string text_of(const nlohmann::ordered_json& entry) {
  if (entry.contains("text")) return entry["text"].get<std::string>();
  const std::string hex = entry["hex"];
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// 64-bit FNV-1a over little-endian ids, as the golden generator writes it.
inline std::string fnv(std::span<const std::int32_t> ids) {
  std::uint64_t value = 0xCBF29CE484222325ull;
  for (const std::int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      value = (value ^ ((static_cast<std::uint32_t>(id) >> shift) & 0xFFu)) * 0x100000001B3ull;
    }
  }
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[(value >> (60 - 4 * i)) & 15];
  return text;
}

}  // namespace latte::test
