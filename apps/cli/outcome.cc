#include "outcome.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace latte::cli {
namespace {

void print_line(std::string_view label, std::string_view message) {
  std::string line(label);
  for (const char c : message) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

int failed(const Error& error) {
  print_line("error: ", error.message);
  return kFailed;
}

int misused(const Error& error) { return misused(error.message); }

int misused(std::string_view message) {
  print_line("error: ", message);
  return kMisused;
}

void warn(std::string_view message) { print_line("warning: ", message); }
void note(std::string_view message) { print_line("note: ", message); }

Status print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written)
    return Error{ErrorKind::kIo,
                 std::string("standard output: ") + std::strerror(errno) + ", expected to write the result"};
  return {};
}

int finish_with(std::string_view text) {
  const Status printed = print(text);
  return printed.ok() ? 0 : failed(printed.error());
}

}  // namespace latte::cli
