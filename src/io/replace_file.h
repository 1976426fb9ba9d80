#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "latte/error.h"

namespace latte {

/// Writes a file that appears whole or not at all: a temporary file in the same folder, flushed to the disk, then
/// renamed over the old one. Whoever dies before commit() has returned leaves the old file; after it the new one
/// survives a power cut. Move-only.
///
/// The temporary file is `NAME.latte-tmp-` and 16 hexadecimal digits. Its writer holds a lock on it, which the system
/// gives up with the writer: the next replacement of the same name removes those that nobody holds.
class FileReplacement {
 public:
  /// A symbolic link is followed: what it names is replaced. Errors: no such folder, something there that is no regular
  /// file, what the system refuses.
  static Result<FileReplacement> begin(const std::string& path);

  FileReplacement(FileReplacement&& other) noexcept;
  FileReplacement& operator=(FileReplacement&& other) noexcept;
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  /// Without a commit() that succeeded the temporary file goes and the old file stays.
  ~FileReplacement();

  /// Appends. Errors: a full disk, a limit.
  Status write(std::span<const std::byte> bytes);
  /// The new file now stands in the old one's place, with the old one's permissions.
  Status commit();

 private:
  FileReplacement() = default;
  Error failed(const char* verb, int code) const;
  void abandon() noexcept;

  std::string path_;       // as asked for
  std::string target_;     // without symbolic links
  std::string temporary_;  // empty: nothing to remove
  int descriptor_ = -1;
};

}  // namespace latte
