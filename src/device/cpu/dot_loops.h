#pragma once

#include <cstdint>

#include "device/cpu/kernel_table.h"

// Loops of one dot instruction over registers. Every product enters the next one of its sum, so that none can be moved
// out of the loop or left out, and there are more sums than an instruction's latency times its units.

namespace latte {
namespace {

/// `Step` holds kSums sums that differ from the start, so that no two are the same computation.
template <class Step>
float dot_loop(std::int64_t iterations) {  // at least one
  typename Step::Sum sums[Step::kSums];
#pragma GCC unroll 32
  for (int i = 0; i < Step::kSums; ++i) sums[i] = Step::first(i);
  do {
#pragma GCC unroll 32
    for (int i = 0; i < Step::kSums; ++i) sums[i] = Step::next(sums[i]);
  } while (--iterations > 0);
  float total = 0;
#pragma GCC unroll 32
  for (int i = 0; i < Step::kSums; ++i) total += Step::total(sums[i]);
  return total;
}

template <class Step>
constexpr DotLoop dot_loop_of(const char* instruction) {
  return {Step::kType, instruction, 2 * Step::kProducts * Step::kSums, &dot_loop<Step>};
}

/// f32 multiply-add of a set's vectors.
template <class S, int kCount>
struct FmaStep {
  using Sum = typename S::Vec;
  static constexpr DotType kType = DotType::kF32;
  static constexpr int kSums = kCount;
  static constexpr int kProducts = S::kWidth;
  static Sum first(int i) { return S::set1(static_cast<float>(i + 2)); }
  static Sum next(Sum sum) { return S::fma(sum, S::set1(0.75f), S::set1(0.125f)); }
  static float total(Sum sum) { return S::hsum(sum); }
};

}  // namespace
}  // namespace latte
