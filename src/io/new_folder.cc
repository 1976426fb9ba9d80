#include "io/new_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/fail.h"
#include "io/file_map.h"
#include "io/replace_file.h"
#include "io/system_error.h"
#include "io/temporary_name.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

/// A new folder's descriptor, locked; -1 with errno.
int create_locked_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return -1;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0 && lock_new(descriptor)) return descriptor;
  const int reason = descriptor < 0 ? errno : EEXIST;
  if (descriptor >= 0) ::close(descriptor);
  errno = reason;
  return -1;
}

/// "a/b/" as "a/b".
fs::path without_slash(const std::string& path) {
  const fs::path whole = fs::path(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

}  // namespace

Result<NewFolder> NewFolder::begin(const std::string& path) {
  NewFolder folder;
  folder.path_ = path;
  if (path.empty()) return fail(ErrorKind::kInvalidInput, "a folder of no name, expected the name of a new one");
  std::error_code code;
  fs::path target = without_slash(path);
  if (fs::is_symlink(target, code)) target = fs::canonical(target, code);
  if (code && code.value() != ENOENT) return folder.failed("be written", code.value());
  if (target.empty()) return fail(ErrorKind::kNotFound, "{}: a link that leads nowhere, expected a folder", path);
  const fs::file_status there = fs::status(target, code);
  if (fs::exists(there) && !fs::is_directory(there))
    return fail(ErrorKind::kInvalidInput, "{}: is a file, expected a new or an empty folder: choose another name",
                path);
  if (fs::exists(there) && !fs::is_empty(target, code)) {
    return fail(
        ErrorKind::kInvalidInput,
        "{}: is a folder with something in it, expected a new or an empty one: choose another name, or remove it "
        "first",
        path);
  }
  remove_stale(target, fs::file_type::directory);
  folder.target_ = target.string();
  for (int attempt = 0; attempt < kNameTries && folder.lock_ < 0; ++attempt) {
    folder.temporary_ = temporary_name(target);
    folder.lock_ = create_locked_folder(folder.temporary_);
    if (folder.lock_ < 0 && errno != EEXIST) break;
  }
  if (folder.lock_ >= 0) return folder;
  const int reason = errno;
  folder.temporary_.clear();
  return folder.failed("be made", reason);
}

NewFolder::NewFolder(NewFolder&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      lock_(std::exchange(other.lock_, -1)) {}

NewFolder& NewFolder::operator=(NewFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(lock_, other.lock_);
  return *this;
}

NewFolder::~NewFolder() { abandon(); }

void NewFolder::abandon() noexcept {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
  temporary_.clear();
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

Error NewFolder::failed(const char* verb, int code) const {
  const Error reason = system_error(path_, verb, code);
  return {reason.kind, reason.message + ", expected a place that may be written, in a folder that is there"};
}

std::string NewFolder::file(std::string_view name) const { return (fs::path(temporary_) / name).string(); }

Status NewFolder::check_room(std::uint64_t bytes) const {
  std::error_code unknown;
  const fs::space_info space = fs::space(temporary_, unknown);
  if (unknown || bytes <= space.available) return {};
  return fail(ErrorKind::kIo,
              "{}: {} bytes are to be written, the disk has {} left: make room, or choose another place", path_, bytes,
              space.available);
}

Status NewFolder::copy_in(const std::string& from, std::string_view name) const {
  const Result<FileMap> source = FileMap::open(from);
  if (!source.ok()) return source.error();
  Result<FileReplacement> copy = FileReplacement::begin(file(name));
  if (!copy.ok()) return copy.error();
  if (Status written = copy->write(source->bytes()); !written.ok()) return written;
  return copy->commit();
}

Status NewFolder::commit() {
  if (const int reason = flush_folder(temporary_); reason != 0) return failed("be flushed to the disk", reason);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR) {
      return fail(ErrorKind::kInvalidInput, "{}: somebody else has put something there meanwhile: choose another name",
                  path_);
    }
    return failed("be put in its place", errno);
  }
  temporary_.clear();
  ::close(std::exchange(lock_, -1));
  const int reason = flush_folder(folder_of(target_));
  if (reason == 0) return {};
  return fail(ErrorKind::kIo, "{}: written, but its folder cannot be flushed to the disk: {}", path_,
              std::generic_category().message(reason));
}

}  // namespace latte
