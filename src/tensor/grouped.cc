#include "tensor/grouped.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/half.h"
#include "tensor/signed_codes.h"

namespace latte {
namespace {

/// The codes of one output's group and the scale they share.
struct CodedGroup {
  bf16 scale;
  std::int8_t codes[kGroupInputs] = {};
};

float magnitude_of(std::span<const float> x) {
  float most = 0;
  for (const float value : x) most = std::max(most, std::abs(value));
  return most;
}

/// To the nearest whole number, ties to even, of what is small: beside 1.5 * 2^23 a float has no places for parts.
/// Unlike std::nearbyint no call on any processor, so that a group is a loop of vectors.
float rounded(float value) {
  constexpr float kNoParts = 12582912;
  return (value + kNoParts) - kNoParts;
}

float nearest_code(float value, float inverse, float least, float most) {
  return std::min(std::max(rounded(value * inverse), least), most);
}

/// The smallest bf16 that is not below a positive value.
bf16 bf16_at_least(float value) {
  const bf16 near = to_bf16(value);
  return to_float(near) < value ? bf16{static_cast<std::uint16_t>(near.bits + 1)} : near;
}

CodedGroup code_q8(std::span<const float> x) {
  CodedGroup group;
  const float most = magnitude_of(x);
  if (most < kLeastMagnitude) return group;
  group.scale = bf16_at_least(most / kMostCode);
  const float inverse = 1 / to_float(group.scale);
  for (std::size_t i = 0; i < x.size(); ++i)
    group.codes[i] = static_cast<std::int8_t>(nearest_code(x[i], inverse, -127, 127));
  return group;
}

/// Scales that are tried for a group of Q4, 1 over each of `inverse`, side by side: what a scale explains of x when its
/// codes are rounded to is (sum x q)^2 / sum q^2, the larger the less squared error the best scale of these codes
/// leaves.
struct Q4Trials {
  static constexpr int kSteps = 9;
  static constexpr int kCount = 2 * kSteps + 1;
  static constexpr int kPadded = 20;  ///< whole vectors

  float inverse[kPadded] = {};
  float product[kPadded] = {};
  float square[kPadded] = {};

  void add(float value) {
    for (int t = 0; t < kPadded; ++t) {
      const float code = nearest_code(value, inverse[t], -8, 7);
      product[t] += value * code;
      square[t] += code * code;
    }
  }
  /// The best scale of the codes of the best trial; of equal ones the first.
  float best_scale() const {
    float most = 0, scale = 0;
    for (int t = 0; t < kCount; ++t) {
      if (square[t] <= 0) continue;
      const float explained = product[t] * product[t] / square[t];
      if (explained <= most) continue;
      most = explained;
      scale = product[t] / square[t];
    }
    return scale;
  }
};

CodedGroup code_q4(std::span<const float> x) {
  CodedGroup group;
  const auto largest = std::max_element(x.begin(), x.end(), [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (largest == x.end() || std::abs(*largest) < kLeastMagnitude) return group;
  // The largest value takes the code with the longer side; scales that clip it or leave room are tried as well.
  Q4Trials trials;
  for (int t = 0; t < Q4Trials::kCount; ++t)
    trials.inverse[t] = -(8 + 0.2f * static_cast<float>(t - Q4Trials::kSteps)) / *largest;
  for (const float value : x) trials.add(value);
  group.scale = to_bf16(trials.best_scale());
  const float inverse = 1 / to_float(group.scale);
  for (std::size_t i = 0; i < x.size(); ++i)
    group.codes[i] = static_cast<std::int8_t>(nearest_code(x[i], inverse, -8, 7));
  return group;
}

/// Group g of a panel in memory: where its scales and its codes are.
template <class Byte>
struct GroupMemory {
  GroupMemory(Byte* panel, DType dtype, std::int64_t g)
      : scales(panel + g / kBlockGroups * block_bytes(dtype) + g % kBlockGroups * kGroupScaleBytes),
        codes(panel + g / kBlockGroups * block_bytes(dtype) + kBlockScaleBytes +
              g % kBlockGroups * group_bytes(dtype)) {}
  Byte* scales;
  Byte* codes;
};

void put_group(const CodedGroup& group, DType dtype, int output, const GroupMemory<std::byte>& memory) {
  std::memcpy(memory.scales + 2 * output, &group.scale, sizeof(group.scale));
  std::byte* codes = memory.codes;
  for (int i = 0; i < kGroupInputs; ++i) {
    std::byte& at = codes[code_offset(dtype, output, i)];
    if (dtype == DType::kQ8) {
      at = std::byte(static_cast<std::uint8_t>(group.codes[i]));
    } else {
      const auto half = static_cast<std::uint8_t>(group.codes[i] + kQ4Zero);
      at |= std::byte(i < kGroupInputs / 2 ? half : half << 4);
    }
  }
}

GroupMemory<const std::byte> group_of(ConstMatRef w, std::int64_t n, std::int64_t group) {
  return {static_cast<const std::byte*>(w.data) + n / kPanelOutputs * panel_bytes(w.dtype, w.cols), w.dtype, group};
}

int code_at(const GroupMemory<const std::byte>& memory, DType dtype, int output, int input) {
  const std::byte at = memory.codes[code_offset(dtype, output, input)];
  if (dtype == DType::kQ8) return static_cast<std::int8_t>(at);
  return static_cast<int>(input < kGroupInputs / 2 ? at & std::byte{15} : at >> 4) - kQ4Zero;
}

float scale_at(const GroupMemory<const std::byte>& memory, int output) {
  bf16 scale;
  std::memcpy(&scale, memory.scales + 2 * output, sizeof(scale));
  return to_float(scale);
}

}  // namespace

GroupedElement grouped_element(ConstMatRef w, std::int64_t n, std::int64_t k) {
  const GroupMemory<const std::byte> group = group_of(w, n, k / kGroupInputs);
  const int output = static_cast<int>(n % kPanelOutputs);
  return {scale_at(group, output), code_at(group, w.dtype, output, static_cast<int>(k % kGroupInputs))};
}

void dequantise_row(ConstMatRef w, std::int64_t n, std::span<float> to) {
  expects(is_grouped(w.dtype) && std::cmp_equal(to.size(), w.cols), "a grouped row has a float for every input");
  const int output = static_cast<int>(n % kPanelOutputs);
  for (std::int64_t g = 0; g < group_count(w.cols); ++g) {
    const GroupMemory<const std::byte> group = group_of(w, n, g);
    const float scale = scale_at(group, output);
    const std::int64_t end = std::min<std::int64_t>(kGroupInputs, w.cols - g * kGroupInputs);
    for (int i = 0; i < end; ++i)
      to[static_cast<std::size_t>(g * kGroupInputs + i)] =
          scale * static_cast<float>(code_at(group, w.dtype, output, i));
  }
}

void quantise_panel(std::span<const float> rows, std::int64_t stride, int outputs, std::int64_t inputs, DType dtype,
                    std::byte* panel) {
  expects(is_grouped(dtype) && outputs >= 0 && outputs <= kPanelOutputs, "a panel has at most 16 outputs");
  std::memset(panel, 0, static_cast<std::size_t>(panel_bytes(dtype, inputs)));
  for (std::int64_t g = 0; g < group_count(inputs); ++g) {
    const std::int64_t left = std::max<std::int64_t>(0, inputs - g * kGroupInputs);
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(kGroupInputs, left));
    const GroupMemory<std::byte> memory(panel, dtype, g);
    for (int n = 0; n < kPanelOutputs; ++n) {
      CodedGroup group;
      if (n < outputs && count > 0) {
        const std::span<const float> x = rows.subspan(static_cast<std::size_t>(n * stride + g * kGroupInputs), count);
        group = dtype == DType::kQ8 ? code_q8(x) : code_q4(x);
      }
      put_group(group, dtype, n, memory);
    }
  }
}

float quantise_group(std::span<const float> x, std::int8_t* codes) {
  std::uint32_t most_bits = 0;
  for (const float value : x) most_bits = std::max(most_bits, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  std::fill_n(codes, kGroupInputs, std::int8_t{0});
  if (most_bits >= 0x7f800000u) return std::numeric_limits<float>::quiet_NaN();
  const float most = std::bit_cast<float>(most_bits);
  if (most < kLeastMagnitude) return 0;
  const float inverse = kMostCode / most;
  for (std::size_t i = 0; i < x.size(); ++i) codes[i] = static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
  return most / kMostCode;
}

}  // namespace latte
