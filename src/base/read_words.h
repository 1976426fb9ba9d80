#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace latte {

/// Reads `count` words in a row, as fast as one thread can, and gives what keeps a compiler from leaving that out.
/// Bytes are asked for 12 KB before they are needed: what the processor fetches by itself ends with every page, and a
/// loop that relies on it reads a third less.
inline std::uint64_t read_words(const std::uint64_t* words, std::size_t count) {
  constexpr std::size_t kAhead = 12288 / sizeof(std::uint64_t);
  std::array<std::uint64_t, 8> sum{};
  for (std::size_t i = 0; i + sum.size() <= count; i += sum.size()) {
    if (i + kAhead < count) __builtin_prefetch(words + i + kAhead);
    for (std::size_t lane = 0; lane < sum.size(); ++lane) sum[lane] ^= words[i + lane];
  }
  std::uint64_t all = 0;
  for (const std::uint64_t lane : sum) all ^= lane;
  return all;
}

}  // namespace latte
