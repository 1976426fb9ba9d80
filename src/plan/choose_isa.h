#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "plan/dot_rate.h"

// Which instruction set `auto` is, in one place. Sets are named narrowest first; each has all instructions of those
// before it and adds its own.

namespace latte {

/// A processor as CPUID names it: vendor "GenuineIntel", display family and model.
struct ProcessorModel {
  std::string_view vendor = "";
  int family = 0;
  int model = 0;
  friend constexpr bool operator==(const ProcessorModel&, const ProcessorModel&) = default;
};

/// An instruction set that is passed over on a processor: its dot instruction is slower than what it replaces.
struct PassedOver {
  ProcessorModel processor;
  std::string_view isa;
};

/// Golden Cove: a core does 78 GFLOP/s of vdpbf16ps and 145 of f32 FMA.
inline constexpr PassedOver kPassedOver[] = {
    {{"GenuineIntel", 6, 0x8f}, "avx512_bf16"},  // Sapphire Rapids
    {{"GenuineIntel", 6, 0xcf}, "avx512_bf16"},  // Emerald Rapids
};

/// Rates of two instructions differ by powers of two or hardly: below the middle between equal and half, an
/// instruction is the slower one whatever noise there was.
inline constexpr double kHardlySlower = 0.7;

/// The rate at which the sets before one multiply operands of a type; bf16 also as f32, which widens it exactly.
constexpr double rate_without(std::span<const std::string_view> narrower, DotType type,
                              std::span<const DotRate> rates) {
  double best = 0;
  for (const DotRate& rate : rates) {
    const bool serves = rate.type == type || (type == DotType::kBf16 && rate.type == DotType::kF32);
    if (serves && std::find(narrower.begin(), narrower.end(), rate.isa) != narrower.end())
      best = std::max(best, rate.gops);
  }
  return best;
}

/// By rates measured here: the widest set none of whose own instructions is slower than what narrower sets do instead.
/// `usable` is not empty. A set without a rate has nothing against it.
constexpr std::string_view choose_isa(std::span<const std::string_view> usable, std::span<const DotRate> rates) {
  for (std::size_t i = usable.size() - 1; i > 0; --i) {
    const bool slower = std::any_of(rates.begin(), rates.end(), [&](const DotRate& rate) {
      return rate.isa == usable[i] && rate.gops < kHardlySlower * rate_without(usable.first(i), rate.type, rates);
    });
    if (!slower) return usable[i];
  }
  return usable.front();
}

/// Without a measurement: the widest set that is not passed over on this processor.
constexpr std::string_view choose_isa(std::span<const std::string_view> usable, const ProcessorModel& processor) {
  for (std::size_t i = usable.size() - 1; i > 0; --i) {
    const bool slower = std::any_of(std::begin(kPassedOver), std::end(kPassedOver), [&](const PassedOver& known) {
      return known.processor == processor && known.isa == usable[i];
    });
    if (!slower) return usable[i];
  }
  return usable.front();
}

/// Whether a measurement could choose between sets: `scalar` is there to fall back on and to compare with.
constexpr bool isa_is_a_choice(std::span<const std::string_view> usable) { return usable.size() > 2; }

}  // namespace latte
