#include "progress_line.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace latte::cli {

ProgressLine::ProgressLine(const Arguments& arguments)
    : on_(!arguments.flag("--no-progress") && (arguments.flag("--progress") || isatty(STDERR_FILENO) != 0)) {}

void ProgressLine::show(std::string_view text) {
  if (!on_) return;
  const std::string line = "\r\x1b[K" + std::string(text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace latte::cli
