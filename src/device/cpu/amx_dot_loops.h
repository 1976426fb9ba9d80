#pragma once

#include <cstdint>

#include "device/cpu/amx_tiles.h"
#include "device/cpu/kernel_table.h"

namespace latte {
namespace {

/// As dot_loops.h, of six tiles of sums: a product of tiles takes 52 cycles and the next may begin after 16.
template <DotType kType>
float amx_dot_loop(std::int64_t iterations) {
  alignas(64) std::uint16_t operand[kTileElements];
  for (std::uint16_t& value : operand) value = 0x3c03;  // bf16 0.008; bytes 60 and 3
  alignas(64) float sums[kTileRows * kTileRows] = {};
  const TileUse use;
  before_tile_loads();
  _tile_loadd(6, operand, 64);
  _tile_loadd(7, operand, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  do {
    if constexpr (kType == DotType::kBf16) {
      _tile_dpbf16ps(0, 6, 7);
      _tile_dpbf16ps(1, 6, 7);
      _tile_dpbf16ps(2, 6, 7);
      _tile_dpbf16ps(3, 6, 7);
      _tile_dpbf16ps(4, 6, 7);
      _tile_dpbf16ps(5, 6, 7);
    } else {
      _tile_dpbssd(0, 6, 7);
      _tile_dpbssd(1, 6, 7);
      _tile_dpbssd(2, 6, 7);
      _tile_dpbssd(3, 6, 7);
      _tile_dpbssd(4, 6, 7);
      _tile_dpbssd(5, 6, 7);
    }
  } while (--iterations > 0);
  // Nothing but a store would show the sums; g++ keeps every one of these instructions as it is.
  _tile_stored(0, sums, 64);
  before_tile_loads();
  return sums[0];
}

template <DotType kType>
constexpr DotLoop amx_loop(const char* instruction) {
  constexpr int kSums = 6;
  constexpr int kDepth = kType == DotType::kBf16 ? kTileDepth : 2 * kTileDepth;
  return {kType, instruction, 2 * kSums * kTileRows * kTileRows * kDepth, &amx_dot_loop<kType>};
}

}  // namespace
}  // namespace latte
