#pragma once

#include <algorithm>
#include <span>

#include "plan/step_class.h"
#include "tensor/dtype.h"

namespace latte::test {

/// max|a-b| / max|b| over all elements, the measure of every tolerance; infinite when sizes differ or a value is NaN.
double max_relative_difference(std::span<const double> a, std::span<const double> b);
double max_relative_difference(std::span<const float> a, std::span<const float> b);

// Tolerances of that measure against the double reference, each stated once.

/// Copies, roundings and choices: nothing is summed, so nothing may differ.
inline constexpr double kExact = 0;

/// Sums of up to a few thousand products in float: an error of some 2^-24 a term grows like the square root of the
/// terms, and exp2, sigmoid and the square root of a device add a few units in the last place.
inline constexpr double kFloatSums = 4e-6;

/// Attention in float: errors of the scores (|score| up to 30, so 2^-24 * 30 and the sum's own) pass through the
/// exponential.
inline constexpr double kFloatAttention = 1e-5;

/// A backend told to compute in bf16 rounds each activation to 8 bits of mantissa: 2^-9 a factor, averaged over
/// the sum but not below 2^-9 for the shortest sums, twice in the gated blocks and in attention (queries, then
/// weights).
inline constexpr double kBf16Products = 1.2e-2;

/// Logits of a whole model of F32 weights: the double reference against goldens that were rounded to float or computed
/// in float (their noise is up to 2.8e-5 of logits near 25), and float backends, whose errors grow over the layers.
inline constexpr double kModelReference = 1e-5;
inline constexpr double kModelF32 = 2e-5;

/// A gated block of grouped weights: the hidden rows of two devices differ by roundings, so that one of their codes may
/// be another, a 127th of its group's largest value.
inline constexpr double kGroupedGated = 4e-3;

/// Many rows of grouped weights multiplied in bf16: the reference rounds x to codes, a 254th of its group's largest
/// value; this rounds x and the weights to 8 bits of mantissa instead, and neither error is in the other.
inline constexpr double kWideGrouped = 2e-2;

/// What a backend rounds beyond float.
struct Rounding {
  bool to_bf16 = false;  ///< activations, for products with bf16 operands
  bool tiles =
      false;  ///< for attention, and in prompt-class steps of many rows for products with bf16 or grouped weights
};

/// The tolerance of sums over operands of type `dtype`, for a call of `rows` rows.
inline double sum_tolerance(DType dtype, const Rounding& rounding, int rows) {
  const bool on_tiles = rounding.tiles && rows > kMaxDecodeRows;
  if (is_grouped(dtype)) return on_tiles ? kWideGrouped : kFloatSums;
  return dtype == DType::kBf16 && (rounding.to_bf16 || on_tiles) ? kBf16Products : kFloatSums;
}
inline double gated_tolerance(DType dtype, const Rounding& rounding, int rows) {
  const double sums = sum_tolerance(dtype, rounding, rows);
  return is_grouped(dtype) ? std::max(kGroupedGated, sums) : sums;
}
inline double attention_tolerance(DType dtype, const Rounding& rounding) {
  const bool rounded = rounding.tiles && (dtype == DType::kBf16 || dtype == DType::kQ8);
  return rounded ? kBf16Products : kFloatAttention;
}

}  // namespace latte::test
