#include "io/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "io/system_error.h"
#include "io/temporary_name.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

/// A new file that this process has locked, or -1 with errno.
int create_locked_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 || lock_new(descriptor)) return descriptor;
  ::close(descriptor);
  errno = EEXIST;
  return -1;
}

}  // namespace

Result<FileReplacement> FileReplacement::begin(const std::string& path) {
  FileReplacement file;
  file.path_ = path;
  std::error_code code;
  fs::path target(path);
  if (fs::is_symlink(target, code)) target = fs::canonical(target, code);
  if (code && code.value() != ENOENT) return file.failed("be written", code.value());
  if (target.empty()) return fail(ErrorKind::kNotFound, "{}: a link that leads nowhere, expected a file", path);
  const fs::file_status there = fs::status(target, code);
  if (fs::exists(there) && !fs::is_regular_file(there)) {
    return fail(ErrorKind::kInvalidInput, "{}: not a regular file, expected a file to replace or a new name", path);
  }
  remove_stale(target, fs::file_type::regular);
  file.target_ = target.string();
  for (int attempt = 0; attempt < kNameTries && file.descriptor_ < 0; ++attempt) {
    file.temporary_ = temporary_name(target);
    file.descriptor_ = create_locked_file(file.temporary_);
    if (file.descriptor_ < 0 && errno != EEXIST) break;
  }
  if (file.descriptor_ >= 0) return file;
  const int reason = errno;
  file.temporary_.clear();
  return file.failed("be written", reason);
}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FileReplacement& FileReplacement::operator=(FileReplacement&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileReplacement::~FileReplacement() { abandon(); }

void FileReplacement::abandon() noexcept {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

Error FileReplacement::failed(const char* verb, int code) const {
  const Error reason = system_error(path_, verb, code);
  return {reason.kind, reason.message + ", expected a folder with room that may be written; nothing was changed"};
}

Status FileReplacement::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("be written", written < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status FileReplacement::commit() {
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0) {
    // Whoever may not keep the old permissions keeps the usual ones.
    [[maybe_unused]] const int ignored = ::fchmod(descriptor_, old.st_mode & 07777);
  }
  if (::fsync(descriptor_) != 0) return failed("be flushed to the disk", errno);
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) return failed("be replaced", errno);
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));

  const int reason = flush_folder(folder_of(target_));
  if (reason == 0) return {};
  return fail(ErrorKind::kIo, "{}: written, but its folder cannot be flushed to the disk: {}", path_,
              std::generic_category().message(reason));
}

}  // namespace latte
