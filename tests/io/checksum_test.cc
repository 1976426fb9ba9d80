#include "io/checksum.h"

#include <gtest/gtest.h>

#include <string_view>

namespace latte::test {
namespace {

Digest of(std::string_view first, std::string_view second = "") {
  Checksum sum;
  sum.add(std::as_bytes(std::span(first)));
  sum.add(std::as_bytes(std::span(second)));
  return sum.digest();
}

TEST(Checksum, IsXxh3OfAHundredAndTwentyEightBits) {
  EXPECT_EQ(of("").hex(), "99aa06d3014798d86001c324468d497f") << "the published value for no bytes";
}

TEST(Checksum, PartsMakeTheWhole) {
  EXPECT_EQ(of("latent", " rows"), of("latent rows"));
  EXPECT_NE(of("latent"), of("Latent"));
}

TEST(Checksum, RestartForgets) {
  Checksum sum;
  sum.add(std::as_bytes(std::span(std::string_view("other"))));
  sum.restart();
  sum.add(std::as_bytes(std::span(std::string_view("latent"))));
  EXPECT_EQ(sum.digest(), of("latent"));
}

}  // namespace
}  // namespace latte::test
