#pragma once

#include <cmath>
#include <limits>

namespace latte::reference {

/// The twin of backend/softmax_state.h in double: log2 of a sum of 2^score.
struct DoubleLog2Sum {
  double value = -std::numeric_limits<double>::infinity();

  bool empty() const { return value == -std::numeric_limits<double>::infinity(); }
};

/// A normalised partial result: o [width] of one packed row of one lane, and the log-sum beside it.
struct DoubleState {
  double* o = nullptr;
  DoubleLog2Sum* log2_sum = nullptr;
};

/// Folds `part` into `state`. An empty side leaves the other one's bits.
inline void fold(DoubleState state, const double* part_o, DoubleLog2Sum part_sum, int width) {
  if (part_sum.empty()) return;
  if (state.log2_sum->empty()) {
    for (int i = 0; i < width; ++i) state.o[i] = part_o[i];
    *state.log2_sum = part_sum;
    return;
  }
  const double top = std::fmax(state.log2_sum->value, part_sum.value);
  const double state_mass = std::exp2(state.log2_sum->value - top);
  const double part_mass = std::exp2(part_sum.value - top);
  const double mass = state_mass + part_mass;
  for (int i = 0; i < width; ++i) state.o[i] = (state_mass / mass) * state.o[i] + (part_mass / mass) * part_o[i];
  state.log2_sum->value = top + std::log2(mass);
}

}  // namespace latte::reference
