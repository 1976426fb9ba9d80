#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/mat_ref.h"

namespace latte {

// latte's own weight formats Q8 and Q4, made for being multiplied: what one instruction reads lies together.
//
// A weight [N, K] is cut into panels of kPanelOutputs outputs and groups of kGroupInputs inputs; two groups are a
// block, which is a whole number of cache lines. Blocks lie panel by panel, and within a panel in the order of inputs,
// so that a product reads memory in one direction. A block is
//   scales   of each group kPanelOutputs x bf16
//   codes    of each group, Q8: for every quad of inputs (0..7) and output (0..15) four signed bytes;
//            Q4: for every quad (0..3) and output (0..15) four bytes, the low half an input of that quad, the high half
//                the same input of the quad four further on; a half is code + 8
// and w[n, k] = scale * code, with codes of -127..127 and -8..7. Outputs past N have scale 0, inputs past K code 0.
//
// Products with such weights round x: row by row and group by group to a scale and codes of -127..127. Sums of codes
// are exact integers; then, group by group in ascending order,
//   y = fma(float(sum), weight scale * x scale, y)
// in f32, so that every instruction set gives the same bits.

/// Raised when panels that were stored before would be read otherwise: files name it, and another one is refused.
inline constexpr int kGroupedLayout = 1;

inline constexpr int kGroupInputs = 32;
inline constexpr int kPanelOutputs = 16;
inline constexpr int kBlockGroups = 2;
inline constexpr int kGroupScaleBytes = 2 * kPanelOutputs;
inline constexpr int kBlockScaleBytes = kBlockGroups * kGroupScaleBytes;
inline constexpr int kQ8GroupBytes = kGroupInputs * kPanelOutputs;
inline constexpr int kQ4GroupBytes = kQ8GroupBytes / 2;
inline constexpr int kQ4Zero = 8;  ///< what a half holds for code 0

constexpr std::int64_t block_count(std::int64_t inputs) {
  return (inputs + kBlockGroups * kGroupInputs - 1) / (kBlockGroups * kGroupInputs);
}
/// Groups of a row of that many inputs, those that fill its last block included.
constexpr std::int64_t group_count(std::int64_t inputs) { return kBlockGroups * block_count(inputs); }
constexpr std::int64_t panel_count(std::int64_t outputs) { return (outputs + kPanelOutputs - 1) / kPanelOutputs; }
constexpr std::int64_t group_bytes(DType dtype) { return dtype == DType::kQ4 ? kQ4GroupBytes : kQ8GroupBytes; }
constexpr std::int64_t block_bytes(DType dtype) { return kBlockScaleBytes + kBlockGroups * group_bytes(dtype); }
/// Bytes of one panel of a weight with that many inputs.
constexpr std::int64_t panel_bytes(DType dtype, std::int64_t inputs) {
  return block_count(inputs) * block_bytes(dtype);
}
/// Bytes of a weight [outputs, inputs] of any type.
constexpr std::int64_t matrix_bytes(DType dtype, std::int64_t outputs, std::int64_t inputs) {
  return is_grouped(dtype) ? panel_count(outputs) * panel_bytes(dtype, inputs)
                           : outputs * inputs * static_cast<std::int64_t>(dtype_bytes(dtype));
}

/// Where the code of an input of a group lies among the group's codes, in bytes. Q4: the byte that holds the half.
constexpr std::int64_t code_offset(DType dtype, int output, int input) {
  const int quad = dtype == DType::kQ4 ? input / 4 % 4 : input / 4;
  return (std::int64_t{quad} * kPanelOutputs + output) * 4 + input % 4;
}

/// Scale and code of element [n, k] of a grouped weight.
struct GroupedElement {
  float scale = 0;
  int code = 0;
};
GroupedElement grouped_element(ConstMatRef w, std::int64_t n, std::int64_t k);

/// Row n of a grouped weight as floats; `to` has a place for every input.
void dequantise_row(ConstMatRef w, std::int64_t n, std::span<float> to);

/// Outputs [16 * panel, ...) of `w` from rows of floats: `rows` [at most 16, K] with `stride` floats between them. Q4
/// scales are searched for the least squared error, Q8 scales take the largest value to code 127.
void quantise_panel(std::span<const float> rows, std::int64_t stride, int outputs, std::int64_t inputs, DType dtype,
                    std::byte* panel);

/// Group of x as codes: x[i] ~ scale * codes[i], codes of -127..127 to nearest even; `codes` has kGroupInputs places,
/// those past x are 0. A group that holds NaN or an infinity gets the scale NaN.
float quantise_group(std::span<const float> x, std::int8_t* codes);

}  // namespace latte
