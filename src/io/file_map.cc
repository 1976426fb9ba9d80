#include "io/file_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/fail.h"
#include "io/system_error.h"

namespace latte {

bool name_exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

FileMap::FileMap(std::string path, const std::byte* data, std::size_t size)
    : path_(std::move(path)), data_(data), size_(size) {}

Result<FileMap> FileMap::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe nobody writes
  if (descriptor < 0) {
    if (errno == ENOENT && name_exists(path)) {
      return fail(ErrorKind::kInvalidInput,
                  "{}: a link to something that is not there, expected a file: fetch it again", path);
    }
    const Error refused = system_error(path, "open", errno);
    return Error{refused.kind, refused.message + ", expected a file that may be read"};
  }
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) {
    const int code = errno;
    ::close(descriptor);
    return system_error(path, "stat", code);
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(ErrorKind::kInvalidInput, "{}: not a regular file but {}, expected the file itself", path,
                S_ISDIR(status.st_mode) ? "a directory" : "a pipe or device");
  }
  const std::size_t size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {  // mmap refuses a length of 0
    ::close(descriptor);
    return FileMap(path, nullptr, 0);
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int code = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) return system_error(path, "map", code);
  return FileMap(path, static_cast<const std::byte*>(data), size);
}

FileMap::FileMap(FileMap&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void FileMap::ask_for_huge_pages() const {
  if (data_ != nullptr) (void)::madvise(const_cast<std::byte*>(data_), size_, MADV_HUGEPAGE);
}

FileMap::~FileMap() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace latte
