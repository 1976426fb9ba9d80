#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/dot_rate.h"
#include "plan/geometry.h"

namespace latte {

/// How `measure_attention` attends.
enum class AttentionArm : std::uint8_t { kExpanded, kMaterialised, kAbsorbed };

/// Multiplications and additions that an attention call asks for: `rows` new rows behind `before` cached ones, each of
/// which sees itself and all rows before it. Products with W_UK and W_UV count where the arm has them; the softmax does
/// not.
std::int64_t attention_operations(const MlaGeometry& g, AttentionArm arm, std::int64_t before, std::int64_t rows);

/// Of measured rates, that of the instruction which attention over cached rows multiplies with: bf16 where the device
/// multiplies them so (`rounded`, BackendInfo::bf16_rows), else f32. Products with W_UK and W_UV may use a faster one.
/// `rates` as measure_dot_rates gives them. Null where the set is not among them.
const DotRate* attention_rate(std::span<const DotRate> rates, std::string_view isa, bool rounded);

}  // namespace latte
