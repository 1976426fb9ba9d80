#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/contract.h"
#include "decode/prompt_cache.h"
#include "io/checksum.h"

namespace {

/// Makes every checksum hold, so that mutations reach what lies behind them.
void repair(std::vector<std::byte>& file) {
  latte::Checksum sum;
  std::size_t at = latte::kPreambleBytes;
  while (at + latte::kSectionHeaderBytes + latte::kChecksumBytes <= file.size()) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, file.data() + at + 8, sizeof bytes);
    if (bytes > file.size() - at - latte::kSectionHeaderBytes - latte::kChecksumBytes) return;
    const std::size_t covered = latte::kSectionHeaderBytes + static_cast<std::size_t>(bytes);
    sum.restart();
    sum.add(std::span(file).subspan(at, covered));
    const latte::Digest digest = sum.digest();
    std::memcpy(file.data() + at + covered, &digest.low, 8);
    std::memcpy(file.data() + at + covered + 8, &digest.high, 8);
    at += covered + latte::kChecksumBytes;
  }
}

void expect_inside(std::span<const std::byte> file, std::span<const std::byte> part) {
  const bool inside =
      part.empty() || (part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size());
  latte::expects(inside, "a section lies inside its file");
}

void read(std::span<const std::byte> file) {
  const auto cache = latte::parse_prompt_cache(file, "fuzz.cache");
  if (!cache.ok()) {
    latte::expects(cache.error().message.find('\n') == std::string::npos, "an error is one line");
    return;
  }
  for (const auto part :
       {cache->rows, cache->mtp_rows, cache->mtp_queue, cache->draft_rows, std::as_bytes(std::span(cache->note))})
    expect_inside(file, part);
  const latte::PromptCacheHeader& header = cache->header;
  latte::expects(cache->tokens.size() == static_cast<std::size_t>(header.tokens), "the header counts the tokens");
  latte::expects(header.rows.rows <= header.tokens, "every row has its token");
  latte::expects(latte::check_same_rows(header, header, "fuzz.cache").ok(), "a header is like itself");
  latte::PromptCacheHeader other = header;
  other.model.weights += "0";
  latte::expects(!latte::check_same_rows(header, other, "fuzz.cache").ok(), "other weights are refused");
}

}  // namespace

/// Any bytes as a prompt cache file, once as they are and once with checksums that hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> file(size);
  if (size > 0) std::memcpy(file.data(), data, size);
  read(file);
  repair(file);
  read(file);
  return 0;
}
