// Feeds a tiktoken file and a tokenizer_config.json, cut from the input at a byte FF, to their reader: as it is, and
// with lines for the 256 bytes before it, without which no file loads. What loads then encodes and decodes a short
// text.
#include <cstddef>
#include <cstdint>

#include "try_tokenizer.h"

namespace {

std::string byte_lines() {
  static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string lines;
  for (unsigned byte = 0; byte < 256; ++byte) {
    lines += {kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
    lines += " " + std::to_string(byte) + "\n";
  }
  return lines;
}

void try_file(std::string_view file, std::string_view config) {
  const auto tokenizer = latte::Tokenizer::parse(latte::TokenizerKind::kTiktoken, file, config, "tiktoken.model");
  if (!tokenizer.ok()) return latte::expect_one_line(tokenizer.error());
  latte::try_tokenizer(*tokenizer, std::nullopt);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = input.find('\xFF');
  const std::string_view file = input.substr(0, cut);
  const std::string_view config = cut == std::string_view::npos ? std::string_view() : input.substr(cut + 1);
  static const std::string kBytes = byte_lines();
  try_file(file, config);
  try_file(kBytes + std::string(file), config);
  return 0;
}
