#include "decode/cache_type.h"

#include "base/fail.h"

namespace latte {

Result<DType> cached_type(CacheType asked, DType otherwise, std::string_view who) {
  switch (asked) {
    case CacheType::kAuto:
      return otherwise;
    case CacheType::kBf16:
      return DType::kBf16;
    case CacheType::kF32:
      return DType::kF32;
    case CacheType::kF16:
      return DType::kF16;
    case CacheType::kQ8:
      return DType::kQ8;
    case CacheType::kFp8:
      break;
  }
  return fail(ErrorKind::kUnsupported, "{} cache type {}, expected q8, bf16, f16 or f32: choose one of these", who,
              word(asked));
}

std::string_view type_word(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "f64";
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBf16:
      return "bf16";
    case DType::kQ8:
      return "q8";
    default:
      return "?";
  }
}

WideInt expanded_row_bytes(const ModelConfig& config, DType dtype) {
  if (config.attention == AttentionKind::kGqa) return config.cache_row(dtype).bytes();
  const MlaGeometry& g = config.geometry;
  const CodedPiece key{g.n, g.p}, value{g.v, 0};
  return WideInt{g.heads} * (row_bytes(dtype, key, key.width()) + row_bytes(dtype, value, value.width()));
}

}  // namespace latte
