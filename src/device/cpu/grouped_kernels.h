#pragma once

#include <cstdint>

#include "device/cpu/kernel_table.h"
#include "device/cpu/row_kernels.h"
#include "tensor/grouped.h"

// Products with grouped weights. `G` multiplies codes (group_dot_*.h): exact integers, whichever instruction does it.
// The f32 part is written once, so every instruction set gives the same bits.

namespace latte {
namespace {

/// The quad of codes that every output is multiplied with at once.
[[gnu::always_inline]] inline std::int32_t code_quad(const std::int8_t* codes) {
  std::int32_t quad;
  __builtin_memcpy(&quad, codes, sizeof(quad));
  return quad;
}

/// The same pointer, of which a compiler knows nothing: what is read through it is read where it is needed, a constant
/// away. g++ else reads the codes of all rows first, or makes an address of every one, and keeps them on the stack:
/// half the speed.
template <class T>
[[gnu::always_inline]] inline const T* read_anew(const T* p) {
  asm volatile("" : "+r"(p));
  return p;
}

/// sums[m][part] += codes of one group of the panel times codes of row m.
template <class G, bool kFourBits, int kRows>
[[gnu::always_inline]] inline void multiply_group(const unsigned char* group, const std::int8_t* codes,
                                                  std::int64_t codes_stride, int part,
                                                  typename G::Sums (&sums)[kRows]) {
  const std::int8_t* rows[kRows];
  for (int m = 0; m < kRows; ++m) rows[m] = read_anew(codes + m * codes_stride);
  const unsigned char* at = group + part * G::kPartBytes;
  constexpr int kQuadBytes = 4 * kPanelOutputs;
  if constexpr (kFourBits) {
    constexpr int kQuads = kGroupInputs / 8;
#pragma GCC unroll 4
    for (int quad = 0; quad < kQuads; ++quad) {
      const auto both = G::load(at + quad * kQuadBytes);
      const auto low = G::low_halves(both), high = G::high_halves(both);
      for (int m = 0; m < kRows; ++m) {
        const std::int8_t* x = rows[m] + quad * 4;
        sums[m] = G::add_q4(sums[m], low, code_quad(x));
        sums[m] = G::add_q4(sums[m], high, code_quad(x + kGroupInputs / 2));
        G::settle(sums[m]);
      }
    }
  } else {
    constexpr int kQuads = kGroupInputs / 4;
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const typename G::Q8 weights(G::load(at + quad * kQuadBytes));
      for (int m = 0; m < kRows; ++m) {
        sums[m] = G::add_q8(sums[m], weights, code_quad(rows[m] + quad * 4));
        G::settle(sums[m]);
      }
    }
  }
}

/// kRows rows of x times one panel.
template <class G, bool kFourBits, int kRows>
void grouped_rows(const void* w, const GroupedRows& x, std::int64_t first, float (&y)[kRows][kPanelOutputs]) {
  using Vec = typename G::Floats::Vec;
  constexpr int kParts = kPanelOutputs / G::Floats::kWidth;
  constexpr int kBytes = kFourBits ? kQ4GroupBytes : kQ8GroupBytes;
  const std::int64_t stride = x.groups * kGroupInputs;
  const std::int8_t* codes = x.codes + first * stride;
  const float* scales = x.scales + first * x.groups;
  const std::int32_t* code_sums = x.sums + first * x.groups;
  Vec totals[kParts][kRows];
  for (int part = 0; part < kParts; ++part) {
    for (int m = 0; m < kRows; ++m) totals[part][m] = G::Floats::zero();
  }
  const auto* block = static_cast<const unsigned char*>(w);
  for (std::int64_t first_group = 0; first_group < x.groups; first_group += kBlockGroups) {
    for (int group = 0; group < kBlockGroups; ++group) {
      const std::int64_t g = first_group + group;
      for (int part = 0; part < kParts; ++part) {
        typename G::Sums sums[kRows];
        for (int m = 0; m < kRows; ++m) sums[m] = kFourBits ? G::begin_q4() : G::begin_q8();
        multiply_group<G, kFourBits, kRows>(block + kBlockScaleBytes + group * kBytes, codes + g * kGroupInputs, stride,
                                            part, sums);
        const auto* weight_scales = reinterpret_cast<const std::uint16_t*>(block + group * kGroupScaleBytes);
        const Vec w_scales = G::Floats::load(weight_scales + part * G::Floats::kWidth);
        const std::int32_t* const group_sums = read_anew(code_sums + g);
        const float* const group_scales = read_anew(scales + g);
        for (int m = 0; m < kRows; ++m) {
          const std::int32_t code_sum = group_sums[m * x.groups];
          const Vec sum = kFourBits ? G::finish_q4(sums[m], code_sum) : G::finish_q8(sums[m], code_sum);
          const Vec scale = G::Floats::mul(w_scales, G::Floats::set1(group_scales[m * x.groups]));
          totals[part][m] = G::fma(sum, scale, totals[part][m]);
        }
      }
    }
    block += kBlockScaleBytes + kBlockGroups * kBytes;
  }
  for (int part = 0; part < kParts; ++part) {
    for (int m = 0; m < kRows; ++m) G::Floats::store(y[m] + part * G::Floats::kWidth, totals[part][m]);
  }
}

template <class G, bool kFourBits, int kRows>
void grouped_block(const GroupedPanel& panel, std::int64_t first) {
  float y[kRows][kPanelOutputs];
  grouped_rows<G, kFourBits, kRows>(panel.w, panel.x, first, y);
  if (panel.w_up != nullptr) {
    float up[kRows][kPanelOutputs];
    grouped_rows<G, kFourBits, kRows>(panel.w_up, panel.x, first, up);
    for (int m = 0; m < kRows; ++m) gate_rows<typename G::Floats>(y[m], up[m], kPanelOutputs);
  }
  for (int m = 0; m < kRows; ++m) {
    float* to = panel.y + (first + m) * panel.y_stride;
    for (int n = 0; n < panel.n; ++n) to[n] = panel.accumulate ? to[n] + y[m][n] : y[m][n];
  }
}

/// The rows of x in blocks of G::kMostRows, the rest in one smaller block.
template <class G, bool kFourBits, int kRows = G::kMostRows>
void grouped_blocks(const GroupedPanel& panel, std::int64_t first) {
  for (; first + kRows <= panel.m; first += kRows) grouped_block<G, kFourBits, kRows>(panel, first);
  if constexpr (kRows > 1) {
    if (first < panel.m) grouped_blocks<G, kFourBits, kRows - 1>(panel, first);
  }
}

template <class G>
void grouped_product(const GroupedPanel& panel) {
  if (panel.four_bits) {
    grouped_blocks<G, true>(panel, 0);
  } else {
    grouped_blocks<G, false>(panel, 0);
  }
}

/// Codes of one group: what quantise_group of tensor/grouped.h says, in a form that compilers make vectors of.
inline void round_group(const float* x, std::int8_t* codes, float& scale, std::int32_t& sum) {
  std::uint32_t most_bits = 0;
  for (int i = 0; i < kGroupInputs; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, x + i, sizeof(bits));
    bits &= 0x7fffffffu;
    most_bits = bits > most_bits ? bits : most_bits;
  }
  float most;
  __builtin_memcpy(&most, &most_bits, sizeof(most));
  const bool finite = most_bits < 0x7f800000u;
  const bool zero = !finite || most < 1e-30f;
  const float inverse = zero ? 0.0f : 127.0f / most;
  constexpr float kRound =
      12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer, ties to even, in the low bits
  sum = 0;
  for (int i = 0; i < kGroupInputs; ++i) {
    const float shifted = (zero ? 0.0f : x[i]) * inverse + kRound;
    std::int32_t bits;
    __builtin_memcpy(&bits, &shifted, sizeof(bits));
    const std::int32_t code = bits - 0x4b400000;
    codes[i] = static_cast<std::int8_t>(code);
    sum += code;
  }
  scale = finite ? (zero ? 0.0f : most / 127.0f) : __builtin_nanf("");
}

inline void round_row(const RoundRow& row) {
  const std::int64_t whole = row.n / kGroupInputs;
  for (std::int64_t g = 0; g < whole; ++g)
    round_group(row.x + g * kGroupInputs, row.codes + g * kGroupInputs, row.scales[g], row.sums[g]);
  constexpr std::int64_t kBlockInputs = kBlockGroups * kGroupInputs;
  const std::int64_t groups = (row.n + kBlockInputs - 1) / kBlockInputs * kBlockGroups;
  for (std::int64_t g = whole; g < groups; ++g) {
    row.scales[g] = 0;
    row.sums[g] = 0;
    __builtin_memset(row.codes + g * kGroupInputs, 0, kGroupInputs);
  }
  const std::int64_t rest = row.n - whole * kGroupInputs;
  if (rest == 0) return;
  float padded[kGroupInputs] = {};
  __builtin_memcpy(padded, row.x + whole * kGroupInputs, static_cast<std::size_t>(rest) * sizeof(float));
  round_group(padded, row.codes + whole * kGroupInputs, row.scales[whole], row.sums[whole]);
}

}  // namespace
}  // namespace latte
