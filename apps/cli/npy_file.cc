#include "npy_file.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>

namespace latte::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "the header says <f4");

Error broken(const std::string& path) {
  return {ErrorKind::kIo, fmt::format("{}: {}, expected a file that can be written", path, std::strerror(errno))};
}

}  // namespace

Result<NpyFile> NpyFile::create(const std::string& path, std::int64_t rows, std::int64_t cols) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return broken(path);
  NpyFile npy(path, file);
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, cols);
  // Magic, version and length take 10 bytes; data starts at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const std::string magic("\x93NUMPY\x01\x00", 8);
  const char length[2] = {static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  const bool written = std::fwrite(magic.data(), 1, magic.size(), file) == magic.size() &&
                       std::fwrite(length, 1, 2, file) == 2 &&
                       std::fwrite(header.data(), 1, header.size(), file) == header.size();
  if (!written) return broken(path);
  return npy;
}

Status NpyFile::append(std::span<const float> values) {
  if (std::fwrite(values.data(), sizeof(float), values.size(), file_.get()) != values.size()) return broken(path_);
  return {};
}

Status NpyFile::close() {
  if (std::fclose(file_.release()) != 0) return broken(path_);
  return {};
}

}  // namespace latte::cli
