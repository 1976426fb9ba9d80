#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/contract.h"
#include "base/fail.h"
#include "io/json_file.h"
#include "io/safetensors.h"

namespace latte {

Status write_safetensors(const std::string& path, std::span<const TensorSource> tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::vector<std::size_t> bytes;
  std::size_t end = 0;
  for (const TensorSource& tensor : tensors) {
    expects(!header.contains(tensor.name), "tensors to write have different names");
    std::size_t count = dtype_bytes(tensor.dtype);
    for (const std::int64_t extent : tensor.shape) count *= static_cast<std::size_t>(extent);
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {end, end + count}}};
    bytes.push_back(count);
    end += count;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');

  const auto close = [](std::FILE* file) { std::fclose(file); };
  std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "wb"), close);
  if (!file) return fail(ErrorKind::kIo, "{}: cannot open for writing: {}", path, std::strerror(errno));
  std::array<unsigned char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<unsigned char>(text.size() >> (8 * i));
  bool written = std::fwrite(length.data(), 1, length.size(), file.get()) == length.size() &&
                 std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  for (std::size_t i = 0; i < tensors.size() && written; ++i) {
    written = bytes[i] == 0 || std::fwrite(tensors[i].data, 1, bytes[i], file.get()) == bytes[i];
  }
  if (!written || std::fflush(file.get()) != 0)
    return fail(ErrorKind::kIo, "{}: cannot write: {}", path, std::strerror(errno));
  return {};
}

}  // namespace latte
