#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "base/fail.h"

namespace latte {

/// What the system refused about a file: kNotFound where nothing is there, else kIo. `code` is an errno.
inline Error system_error(const std::string& path, const char* verb, int code) {
  const ErrorKind kind = code == ENOENT || code == ENOTDIR ? ErrorKind::kNotFound : ErrorKind::kIo;
  return fail(kind, "{}: cannot {}: {}", path, verb, std::generic_category().message(code));
}

}  // namespace latte
