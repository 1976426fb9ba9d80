#include "io/temporary_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <random>
#include <system_error>

namespace latte {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kMostNameBytes = 200;  // the suffix must fit into the 255 bytes of a name

/// What every temporary name of `target` begins with.
std::string temporary_prefix(const fs::path& target) {
  return target.filename().string().substr(0, kMostNameBytes) + ".latte-tmp-";
}

std::string random_digits() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", static_cast<std::uint32_t>(device()), static_cast<std::uint32_t>(device()));
}

bool is_temporary(const std::string& name, const std::string& prefix) {
  return name.size() == prefix.size() + kHexDigits && name.starts_with(prefix) &&
         std::all_of(name.end() - kHexDigits, name.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

fs::path folder_of(const fs::path& target) { return target.has_parent_path() ? target.parent_path() : fs::path("."); }

std::string temporary_name(const fs::path& target) {
  return (folder_of(target) / (temporary_prefix(target) + random_digits())).string();
}

bool lock_new(int descriptor) {
  const bool lost = ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat status {};
  return !lost && ::fstat(descriptor, &status) == 0 && status.st_nlink > 0;
}

void remove_stale(const fs::path& target, fs::file_type type) {
  const std::string prefix = temporary_prefix(target);
  std::error_code code;
  for (fs::directory_iterator entry(folder_of(target), code), end; !code && entry != end; entry.increment(code)) {
    std::error_code ignored;
    if (!is_temporary(entry->path().filename().string(), prefix) || entry->symlink_status(ignored).type() != type)
      continue;
    const int descriptor = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry->path(), ignored);
    ::close(descriptor);
  }
}

int flush_folder(const fs::path& folder) {
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return 0;
  const int reason = ::fsync(directory) == 0 || errno == EINVAL ? 0 : errno;
  ::close(directory);
  return reason;
}

}  // namespace latte
