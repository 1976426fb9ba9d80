#pragma once

namespace latte {

/// Codes of 8 bits are -127 to 127.
inline constexpr float kMostCode = 127;
/// Values below it count as zero: 127 over their greatest must not overflow.
inline constexpr float kLeastMagnitude = 1e-30f;

}  // namespace latte
