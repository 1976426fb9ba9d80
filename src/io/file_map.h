#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "latte/error.h"

namespace latte {

/// Whether a file, or anything else, has this name. A link that leads nowhere has: reading it is then the error.
bool name_exists(const std::string& path);

/// A file mapped read-only for as long as this object lives. Move-only; the mapped address survives moves.
/// Threads may read it together. A file that shrinks while mapped is outside the contract (the system raises SIGBUS).
class FileMap {
 public:
  /// Maps the whole of `path`; a file of 0 bytes gives an empty span. kNotFound or kIo with the path and the system's
  /// reason.
  static Result<FileMap> open(const std::string& path);

  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  /// Asks for huge pages, which file systems that have them give to what is read often. A wish: nothing else changes.
  void ask_for_huge_pages() const;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  FileMap(std::string path, const std::byte* data, std::size_t size);

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace latte
