#include "outcome.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace latte::cli {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

struct Log {
  std::string path;
  File file{nullptr, std::fclose};
};

Log& the_log() {
  static Log log;
  return log;
}

void print_line(std::string_view label, std::string_view message) {
  std::string line(label);
  for (const char c : message) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  tell(line);
}

}  // namespace

void tell(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  Log& log = the_log();
  if (log.file == nullptr) return;
  const bool written =
      std::fwrite(text.data(), 1, text.size(), log.file.get()) == text.size() && std::fflush(log.file.get()) == 0;
  if (written) return;
  const std::string reason = std::strerror(errno);
  log.file.reset();  // once is enough
  warn("--log-file " + log.path + ": " + reason + "; nothing more goes to it");
}

Status open_log(const std::string& path) {
  the_log().path = path;
  the_log().file.reset(std::fopen(path.c_str(), "ab"));
  if (the_log().file != nullptr) return {};
  return Error{ErrorKind::kIo, "--log-file " + path + ": " + std::strerror(errno) + ", expected a file to append to"};
}

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
void warn_busy(double load_average, int threads, std::string_view consequence) {
  warn(fmt::format("the machine is busy, load average {:.1f} over {} threads: {}", load_average, threads, consequence));
}
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
