#pragma once

#include <cstdint>
#include <string_view>

namespace latte {

/// What a dot instruction multiplies.
enum class DotType : std::uint8_t { kF32, kBf16, kInt8 };

constexpr std::string_view dot_type_name(DotType type) {
  return type == DotType::kF32 ? "f32" : type == DotType::kBf16 ? "bf16" : "int8";
}

/// The rate of one dot instruction with all its operands in registers: what no product can exceed.
struct DotRate {
  std::string_view isa;  ///< the narrowest instruction set that has it; lives as long as the program
  DotType type = DotType::kF32;
  std::string_view instruction;  ///< as the processor's manual calls it
  double gops = 0;               ///< 10^9 multiplications and additions a second, all threads together
};

}  // namespace latte
