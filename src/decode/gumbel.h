#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/random.h"

namespace latte {

/// Independent families of noise of one seed. Sampling of text uses the first; rules that need draws of their own take
/// another, so that no draw is used twice.
enum class NoiseStream : std::uint32_t { kChoice = 0, kAcceptance = 1, kResidual = 2 };

/// A uniform variate in (0, 1) from 32 bits: the middle of one of 2^32 equal cells, so never 0 or 1.
constexpr double open_uniform(std::uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

/// A standard Gumbel variate from 32 bits.
inline double gumbel(std::uint32_t bits) { return -std::log(-std::log(open_uniform(bits))); }

/// No value of gumbel() reaches this. The largest u is 1 - 2^-33, and -log u > 1 - u, so gumbel < -log 2^-33 = 22.874.
inline constexpr double kGumbelCeiling = 23.0;

/// An upper bound of gumbel(bits) without a logarithm: with z leading one bits, 1 - u >= 2^-(z+1), so
/// gumbel < -log(1 - u) <= (z + 1) log 2. The last term covers the rounding of gumbel() itself.
inline double gumbel_bound(std::uint32_t bits) {
  constexpr double kLog2 = 0.693147180559945309;
  return (std::countl_one(bits) + 1) * kLog2 + 1e-9;
}

/// The noise G(seed, position, token) of one position: a pure function of the three, the same for every model, drafter,
/// filter, depth and device. One Philox block serves four neighbouring tokens.
class GumbelNoise {
 public:
  GumbelNoise(std::uint64_t seed, std::int64_t position, NoiseStream stream = NoiseStream::kChoice)
      : key_(philox_key(seed)), position_(static_cast<std::uint64_t>(position)), stream_(stream) {}

  /// The 32 random bits of a token. Fastest when neighbouring tokens are asked for in a row.
  std::uint32_t bits(std::uint32_t token) {
    if (const std::uint32_t quad = token / 4; quad != quad_) {
      quad_ = quad;
      words_ = philox4x32({quad, static_cast<std::uint32_t>(position_), static_cast<std::uint32_t>(position_ >> 32),
                           static_cast<std::uint32_t>(stream_)},
                          key_);
    }
    return words_[token % 4];
  }

 private:
  PhiloxKey key_;
  std::uint64_t position_;
  NoiseStream stream_;
  std::uint32_t quad_ = 0xffffffff;  // no token has this quad: ids are below 2^31
  PhiloxCounter words_{};
};

}  // namespace latte
