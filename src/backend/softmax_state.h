#pragma once

#include <cmath>
#include <limits>

namespace latte {

/// log2 of a sum of 2^score: a type of its own, since a natural logarithm passed by mistake gives a plausible wrong
/// average.
struct Log2Sum {
  float value = -std::numeric_limits<float>::infinity();

  constexpr bool empty() const { return value == -std::numeric_limits<float>::infinity(); }
};

/// How two normalised partial results combine: o = a_weight * o_a + b_weight * o_b.
struct MergeWeights {
  float a_weight = 0;
  float b_weight = 0;
  Log2Sum sum;
};

/// The merge law. It must not be called with an empty side: merging an empty state returns the other operand's bits,
/// which the caller does by copying.
inline MergeWeights merge_weights(Log2Sum a, Log2Sum b) {
  const float top = a.value > b.value ? a.value : b.value;
  const float a_mass = std::exp2(a.value - top);
  const float b_mass = std::exp2(b.value - top);
  const float mass = a_mass + b_mass;
  return {a_mass / mass, b_mass / mass, {top + std::log2(mass)}};
}

}  // namespace latte
