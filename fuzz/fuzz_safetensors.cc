#include <cstddef>
#include <cstdint>

#include "base/contract.h"
#include "io/safetensors.h"

/// Any bytes as a safetensors file: the table that comes out stays inside the file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto table = latte::parse_safetensors({reinterpret_cast<const std::byte*>(data), size}, "fuzz.safetensors");
  if (!table.ok()) {
    latte::expects(table.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  for (const latte::TensorInfo& tensor : table->tensors) {
    latte::expects(tensor.offset <= size && tensor.bytes <= size - tensor.offset, "a tensor lies inside its file");
    std::size_t bytes = latte::dtype_bytes(tensor.dtype);
    for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
    latte::expects(bytes == tensor.bytes, "a tensor's bytes are those of its shape");
  }
  return 0;
}
