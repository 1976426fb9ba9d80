#pragma once

#include <cstdint>

#include "device/cpu/kernel_table.h"
#include "device/cpu/row_kernels.h"
#include "tensor/grouped.h"

// Products with grouped weights. `G` multiplies codes (group_dot_*.h): exact integers, whichever instruction does it.
// The f32 part is written once, so every instruction set gives the same bits.

namespace latte {
namespace {

/// sums[m] += codes of one part of a group of the panel times codes of row m.
template <class G, bool kFourBits, int kRows>
[[gnu::always_inline]] inline void multiply_group(const unsigned char* part, const CodeRecord<kRows>& x,
                                                  typename G::Sums (&sums)[kRows]) {
  constexpr int kQuadBytes = 4 * kPanelOutputs;
  constexpr int kQuads = kGroupInputs / 4;
  if constexpr (kFourBits) {
#pragma GCC unroll 4
    for (int quad = 0; quad < kQuads / 2; ++quad) {
      const auto both = G::load(part + quad * kQuadBytes);
      const auto low = G::low_halves(both), high = G::high_halves(both);
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        sums[m] = G::add_q4(sums[m], low, x.quads[quad][m]);
        sums[m] = G::add_q4(sums[m], high, x.quads[quad + kQuads / 2][m]);
        G::settle(sums[m]);
      }
    }
  } else {
#pragma GCC unroll 8
    for (int quad = 0; quad < kQuads; ++quad) {
      const typename G::Q8 weights(G::load(part + quad * kQuadBytes));
#pragma GCC unroll 16
      for (int m = 0; m < kRows; ++m) {
        sums[m] = G::add_q8(sums[m], weights, x.quads[quad][m]);
        G::settle(sums[m]);
      }
    }
  }
}

/// Bytes of a panel that are asked for before its codes are needed. The processor's own prefetch ends with every page
/// and knows nothing of the next panel.
inline constexpr int kPanelAhead = 6144;

/// A panel, whether it comes from memory, and what is read next from there; null: nothing is.
struct PanelRead {
  const void* panel = nullptr;
  const void* following = nullptr;
  bool from_memory = true;
};

/// kRows rows of x, a block of theirs, times one panel.
template <class G, bool kFourBits, int kRows>
void grouped_rows(const PanelRead& w, const GroupedRows& x, float (&y)[kRows][kPanelOutputs]) {
  using Vec = typename G::Floats::Vec;
  constexpr int kParts = kPanelOutputs / G::Floats::kWidth;
  constexpr int kBytes = kFourBits ? kQ4GroupBytes : kQ8GroupBytes;
  constexpr int kBlockBytes = kBlockScaleBytes + kBlockGroups * kBytes;
  constexpr std::int64_t kAhead = kPanelAhead / kBlockBytes;
  Vec totals[kParts][kRows];
  for (int part = 0; part < kParts; ++part) {
    for (int m = 0; m < kRows; ++m) totals[part][m] = G::Floats::zero();
  }
  const auto* block = static_cast<const unsigned char*>(w.panel);
  const auto* record = reinterpret_cast<const CodeRecord<kRows>*>(x.words);
  static_assert(sizeof(*record) == sizeof(*x.words) * kCodeWords * kRows);
  const std::int64_t blocks = x.groups / kBlockGroups;
  for (std::int64_t b = 0; b < blocks; ++b, block += kBlockBytes) {
    const std::int64_t past = b + kAhead - blocks;
    if (w.from_memory && (past < 0 || w.following != nullptr)) {
      const unsigned char* ahead =
          past < 0 ? block + kAhead * kBlockBytes : static_cast<const unsigned char*>(w.following) + past * kBlockBytes;
#pragma GCC unroll 32
      for (int line = 0; line < kBlockBytes; line += 64) G::Floats::prefetch(ahead + line);
    }
    for (int group = 0; group < kBlockGroups; ++group, ++record) {
      for (int part = 0; part < kParts; ++part) {
        const CodeRecord<kRows>& rows = *read_anew(record);
        typename G::Sums sums[kRows];
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m)
          sums[m] = kFourBits ? G::begin_q4(rows.q4_offsets[m]) : G::begin_q8(rows.q8_offsets[m]);
        multiply_group<G, kFourBits, kRows>(block + kBlockScaleBytes + group * kBytes + part * G::kPartBytes, rows,
                                            sums);
        const auto* weight_scales = reinterpret_cast<const std::uint16_t*>(block + group * kGroupScaleBytes);
        const Vec w_scales = G::Floats::load(weight_scales + part * G::Floats::kWidth);
#pragma GCC unroll 16
        for (int m = 0; m < kRows; ++m) {
          const Vec sum = kFourBits ? G::finish_q4(sums[m], rows.q4_offsets[m]) : G::finish_q8(sums[m]);
          const Vec scale = G::Floats::mul(w_scales, G::Floats::set1(rows.scales[m]));
          totals[part][m] = G::fma(sum, scale, totals[part][m]);
        }
      }
    }
  }
  for (int part = 0; part < kParts; ++part) {
    for (int m = 0; m < kRows; ++m) G::Floats::store(y[m] + part * G::Floats::kWidth, totals[part][m]);
  }
}

template <class G, bool kFourBits, int kRows>
void grouped_block(const GroupedPanel& panel, std::int64_t first) {
  float y[kRows][kPanelOutputs];
  const GroupedRows x = panel.x.from(first);
  const bool from_memory = first == 0;
  const void* following = panel.w_up != nullptr ? panel.w_up : panel.following;
  grouped_rows<G, kFourBits, kRows>({panel.w, following, from_memory}, x, y);
  if (panel.w_up != nullptr) {
    float up[kRows][kPanelOutputs];
    grouped_rows<G, kFourBits, kRows>({panel.w_up, panel.following, from_memory}, x, up);
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

inline void round_groups(const RoundGroups& groups) {
  std::int32_t* record = groups.to;
  const int rows = groups.rows;
  for (std::int64_t g = 0; g < groups.groups; ++g, record += rows * kCodeWords) {
    const std::int64_t left = groups.n - g * kGroupInputs;
    for (int m = 0; m < rows; ++m) {
      const float* x = groups.x + m * groups.stride + g * kGroupInputs;
      float padded[kGroupInputs] = {};
      if (left < kGroupInputs) {
        for (int i = 0; i < left; ++i) padded[i] = x[i];
        x = padded;
      }
      std::int8_t codes[kGroupInputs];
      float scale;
      std::int32_t sum;
      round_group(x, codes, scale, sum);
      std::int32_t words[kCodeWords];
      __builtin_memcpy(words, codes, sizeof(codes));
      __builtin_memcpy(words + kGroupInputs / 4, &scale, sizeof(scale));
      words[kGroupInputs / 4 + 1] = -kQ4Zero * sum;
      words[kGroupInputs / 4 + 2] = -kQ8Shift * sum;
      for (int i = 0; i < kCodeWords; ++i) record[i * rows + m] = words[i];
    }
  }
}

}  // namespace
}  // namespace latte
