#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "tensor/dtype.h"

namespace latte {

/// One tensor of a safetensors file. `offset` counts bytes from the start of the file.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// The table of a safetensors file: tensors in the order of their data.
struct SafetensorsTable {
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string> metadata;
};

/// The dtype of a header word ("BF16"), or an error that lists the words read.
Result<DType> parse_dtype(std::string_view word);

/// "[272, 48]", for messages.
std::string shape_text(std::span<const std::int64_t> shape);

/// Reads the table at the head of `file`, the bytes of a whole file; `source` names it in errors.
///
/// Strict: header length within the file and below 100 MB, every shape * dtype equal to its byte range, ranges inside
/// the file, and the data covered exactly once (no overlap, hole or trailing bytes). Errors name the file and the
/// tensor. Allocates in proportion to the header only.
Result<SafetensorsTable> parse_safetensors(std::span<const std::byte> file, std::string_view source);

/// A tensor to be written; `data` holds bytes() bytes.
struct TensorSource {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;

  /// The product of shape times the dtype's bytes.
  std::size_t bytes() const;
};

/// What a file begins with that holds these tensors one behind the other, up to the first one's data, which starts at a
/// multiple of `alignment`, a multiple of 8. Their `data` is not looked at.
std::string safetensors_head(std::span<const TensorSource> tensors, std::size_t alignment,
                             const std::map<std::string, std::string>& metadata = {});

/// Writes tensors in the order given, data aligned to 8 bytes where element sizes allow; replaces the file. kIo on
/// failure.
Status write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace latte
