#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace latte {

/// Element types of tensors on disk and in memory.
enum class DType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBf16,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kQ8,  ///< latte's own 8-bit codes: of weights tensor/grouped.h, of cached rows tensor/row_format.h
  kQ4   ///< the same of weights, 4-bit codes
};

/// Types whose elements share scales and bytes: a matrix of them is blocks, not elements.
constexpr bool is_grouped(DType dtype) { return dtype == DType::kQ8 || dtype == DType::kQ4; }

/// Bytes of one element; 0 for grouped types, which have none of their own.
constexpr std::size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF16:
    case DType::kBf16:
    case DType::kI16:
    case DType::kU16:
      return 2;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kF8E8M0:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
    case DType::kQ8:
    case DType::kQ4:
      break;
  }
  return 0;
}

/// Types the compute operations read directly.
constexpr bool is_float(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBf16;
}

/// The word of safetensors headers, which is also what messages print: "F32", "BF16", "F8_E4M3".
constexpr std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "F64";
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kBf16:
      return "BF16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E5M2:
      return "F8_E5M2";
    case DType::kF8E8M0:
      return "F8_E8M0";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kU64:
      return "U64";
    case DType::kU32:
      return "U32";
    case DType::kU16:
      return "U16";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
    case DType::kQ8:
      return "Q8";
    case DType::kQ4:
      return "Q4";
  }
  return "?";
}

}  // namespace latte
