#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/dot_rate.h"
#include "plan/geometry.h"

namespace latte {

/// How `measure_attention` attends.
enum class AttentionArm : std::uint8_t { kExpanded, kMaterialised, kAbsorbed };

/// Multiplications and additions of the two parts of an attention call; the softmax counts as none.
struct AttentionOperations {
  std::int64_t core = 0;      ///< queries with keys, probabilities with values
  std::int64_t products = 0;  ///< with W_UK and W_UV, where the arm has them

  std::int64_t total() const { return core + products; }
};

/// Of `rows` new rows behind `before` cached ones, each of which sees itself and all rows before it.
AttentionOperations attention_operations(const MlaGeometry& g, AttentionArm arm, std::int64_t before,
                                         std::int64_t rows);

/// Seconds below which a part cannot be done: its bytes at so many GB/s or its operations at so many 10^9 a second (0:
/// not known), whichever take longer.
double part_floor(std::int64_t bytes, double gbytes_per_second, std::int64_t operations, double gops);

/// Of measured rates, that of the instruction which attention over cached rows multiplies with: bf16 where the device
/// multiplies them so (`rounded`, BackendInfo::bf16_rows), else f32. Products with W_UK and W_UV may use a faster one.
/// `rates` as measure_dot_rates gives them. Null where the set is not among them.
const DotRate* attention_rate(std::span<const DotRate> rates, std::string_view isa, bool rounded);

}  // namespace latte
