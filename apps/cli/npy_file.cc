#include "npy_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace latte::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "the header says <f4");

Error broken(const std::string& path) {
  return {ErrorKind::kIo, fmt::format("{}: {}, expected a file that can be written", path, std::strerror(errno))};
}

/// Where the rows go first: beside the file, or straight to what is no plain file.
std::string place_of_rows(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return path.string();
  return fmt::format("{}.{}.part", path.string(), getpid());
}

}  // namespace

Result<NpyFile> NpyFile::create(const std::string& path, std::int64_t rows, std::int64_t cols) {
  // A link stays a link: the file it leads to is the one replaced.
  std::error_code ignored;
  const std::filesystem::path target = std::filesystem::canonical(path, ignored);
  const std::string resolved = target.empty() ? path : target.string();
  const std::string beside = place_of_rows(resolved);
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  if (file == nullptr) return broken(path);
  NpyFile npy(resolved, beside, file);
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
  const bool flushed = std::fclose(file_.release()) == 0;
  if (flushed && (written_ == path_ || std::rename(written_.c_str(), path_.c_str()) == 0)) return {};
  const Error error = broken(path_);
  if (written_ != path_) std::remove(written_.c_str());
  return error;
}

NpyFile::~NpyFile() {
  if (file_ == nullptr) return;
  file_.reset();
  if (written_ != path_) std::remove(written_.c_str());
}

}  // namespace latte::cli
