#include "device/reference/rows_of_doubles.h"

#include <algorithm>

#include "tensor/half.h"

namespace latte::reference {

void read_doubles(const void* from, DType dtype, std::int64_t count, double* to) {
  switch (dtype) {
    case DType::kF64:
      std::copy_n(static_cast<const double*>(from), count, to);
      return;
    case DType::kF32:
      std::copy_n(static_cast<const float*>(from), count, to);
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(static_cast<const bf16*>(from)[i]);
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(static_cast<const f16*>(from)[i]);
      return;
    default:
      expects(false, "the reference backend reads F64, F32, BF16 and F16");
  }
}

void write_doubles(const double* from, std::int64_t count, void* to, DType dtype) {
  switch (dtype) {
    case DType::kF64:
      std::copy_n(from, count, static_cast<double*>(to));
      return;
    case DType::kF32:
      for (std::int64_t i = 0; i < count; ++i) static_cast<float*>(to)[i] = static_cast<float>(from[i]);
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) static_cast<bf16*>(to)[i] = to_bf16(static_cast<float>(from[i]));
      return;
    case DType::kF16:
      for (std::int64_t i = 0; i < count; ++i) static_cast<f16*>(to)[i] = to_f16(static_cast<float>(from[i]));
      return;
    default:
      expects(false, "the reference backend writes F64, F32, BF16 and F16");
  }
}

}  // namespace latte::reference
