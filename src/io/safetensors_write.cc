#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/contract.h"
#include "base/fail.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace latte {

std::size_t TensorSource::bytes() const {
  std::size_t count = dtype_bytes(dtype);
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

std::string safetensors_head(std::span<const TensorSource> tensors, std::size_t alignment,
                             const std::map<std::string, std::string>& metadata) {
  expects(alignment > 0 && alignment % 8 == 0, "data starts at a multiple of 8 bytes");
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t end = 0;
  for (const TensorSource& tensor : tensors) {
    expects(!header.contains(tensor.name), "tensors to write have different names");
    const std::size_t begin = end;
    end += tensor.bytes();
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  const std::string text = header.dump();
  std::string head(8, '\0');
  const std::size_t bytes = (head.size() + text.size() + alignment - 1) / alignment * alignment;
  for (std::size_t i = 0; i < 8; ++i) head[i] = static_cast<char>((bytes - 8) >> (8 * i));
  head += text;
  head.resize(bytes, ' ');
  return head;
}

Status write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata) {
  const std::string head = safetensors_head(tensors, 8, metadata);
  const auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "wb"), close);
  if (!file) return fail(ErrorKind::kIo, "{}: cannot open for writing: {}", path, std::strerror(errno));
  bool written = std::fwrite(head.data(), 1, head.size(), file.get()) == head.size();
  for (const TensorSource& tensor : tensors) {
    if (!written) break;
    const std::size_t bytes = tensor.bytes();
    written = bytes == 0 || std::fwrite(tensor.data, 1, bytes, file.get()) == bytes;
  }
  if (!written || std::fflush(file.get()) != 0)
    return fail(ErrorKind::kIo, "{}: cannot write: {}", path, std::strerror(errno));
  return {};
}

}  // namespace latte
