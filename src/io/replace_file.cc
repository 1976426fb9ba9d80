#include "io/replace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>
#include <utility>

#include "io/system_error.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr int kTries = 16;
constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kMostNameBytes = 200;  // the suffix must fit into the 255 bytes of a name

/// What every temporary file of `target` begins with.
std::string temporary_prefix(const fs::path& target) {
  return target.filename().string().substr(0, kMostNameBytes) + ".latte-tmp-";
}

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

std::string random_digits() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", static_cast<std::uint32_t>(device()), static_cast<std::uint32_t>(device()));
}

bool is_temporary(const std::string& name, const std::string& prefix) {
  return name.size() == prefix.size() + kHexDigits && name.starts_with(prefix) &&
         std::all_of(name.end() - kHexDigits, name.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

/// Removes the temporary files of writers that are gone. What cannot be looked at or removed stays.
void remove_stale(const fs::path& target) {
  const std::string prefix = temporary_prefix(target);
  std::error_code code;
  for (fs::directory_iterator entry(folder_of(target), code), end; !code && entry != end; entry.increment(code)) {
    if (!is_temporary(entry->path().filename().string(), prefix)) continue;
    const int descriptor = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
}

/// A new file that this process has locked, or -1 with errno. Where the file system has no locks nobody removes it.
int create_locked(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return -1;
  // Between the two calls another writer may have taken it for one that nobody holds.
  const bool lost = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat status {};
  if (!lost && ::fstat(descriptor, &status) == 0 && status.st_nlink > 0) return descriptor;
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
  remove_stale(target);
  file.target_ = target.string();
  for (int attempt = 0; attempt < kTries && file.descriptor_ < 0; ++attempt) {
    file.temporary_ = (folder_of(target) / (temporary_prefix(target) + random_digits())).string();
    file.descriptor_ = create_locked(file.temporary_);
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

  const fs::path folder = folder_of(target_);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that may not be read, or a file system that flushes no folders: the rename stands all the same.
  if (directory < 0) return {};
  const bool flushed = ::fsync(directory) == 0 || errno == EINVAL;
  const int reason = errno;
  ::close(directory);
  if (flushed) return {};
  return fail(ErrorKind::kIo, "{}: written, but its folder cannot be flushed to the disk: {}", path_,
              std::generic_category().message(reason));
}

}  // namespace latte
