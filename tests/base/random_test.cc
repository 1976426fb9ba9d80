#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace latte {
namespace {

// The known-answer vectors published with Random123 for philox4x32 with 10 rounds.
static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) == PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
static_assert(philox_key(0x299f31d0a4093822) == PhiloxKey{0xa4093822, 0x299f31d0});

TEST(Philox, MeetsTheKnownAnswersAtRunTimeToo) {
  volatile std::uint32_t zero = 0;
  const PhiloxCounter got = philox4x32({zero, zero, zero, zero}, {zero, zero});
  EXPECT_EQ(got, (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, NeighbouringCountersAndKeysShareNoWord) {
  std::set<std::uint32_t> words;
  for (std::uint32_t word = 0; word < 4; ++word) {
    for (std::uint32_t value = 0; value < 16; ++value) {
      PhiloxCounter counter{1, 2, 3, 4};
      counter[word] = 100 + value;
      for (const std::uint32_t out : philox4x32(counter, {5, 6})) words.insert(out);
    }
  }
  for (std::uint64_t seed = 1000; seed < 1016; ++seed) {
    for (const std::uint32_t out : philox4x32({1, 2, 3, 4}, philox_key(seed))) words.insert(out);
  }
  EXPECT_EQ(words.size(), 5U * 16U * 4U);
}

TEST(Philox, EveryOutputBitIsSetHalfTheTime) {
  std::array<int, 128> ones{};
  constexpr int kDraws = 20000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const PhiloxCounter words = philox4x32({i, 0, 0, 0}, {7, 0});
    for (std::size_t bit = 0; bit < ones.size(); ++bit)
      ones[bit] += static_cast<int>(words[bit / 32] >> (bit % 32) & 1U);
  }
  // Five standard deviations of a fair coin: 5 x sqrt(20000) / 2 = 354.
  for (const int count : ones) EXPECT_NEAR(count, kDraws / 2, 354);
}

}  // namespace
}  // namespace latte
