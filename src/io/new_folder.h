#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte {

/// A folder that appears whole or not at all: it is filled under a temporary name beside its place
/// (io/temporary_name.h) and renamed at the end. Whoever dies before leaves the place as it was; the next writer of the
/// same place removes what is left of him. Move-only.
class NewFolder {
 public:
  /// `path` names nothing yet, or an empty folder. Errors: something else is there; no folder to hold it; what the
  /// system refuses.
  static Result<NewFolder> begin(const std::string& path);

  NewFolder(NewFolder&& other) noexcept;
  NewFolder& operator=(NewFolder&& other) noexcept;
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  /// Without a commit() that succeeded all that was written goes.
  ~NewFolder();

  /// Where a file of this name is to be written, until commit().
  std::string file(std::string_view name) const;
  /// The folder under its temporary name.
  const std::string& temporary() const { return temporary_; }
  /// Whether the disk has room for so many bytes more. Errors: it has not, with both numbers.
  Status check_room(std::uint64_t bytes) const;
  /// Copies a file's content under the same or another name.
  Status copy_in(const std::string& from, std::string_view name) const;
  /// The folder now stands in its place. The files in it are on the disk already.
  Status commit();

 private:
  NewFolder() = default;
  Error failed(const char* verb, int code) const;
  void abandon() noexcept;

  std::string path_;       // as asked for
  std::string target_;     // without a slash at the end
  std::string temporary_;  // empty: nothing to remove
  int lock_ = -1;
};

}  // namespace latte
