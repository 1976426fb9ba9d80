#pragma once

#include <string_view>

#include "arguments.h"

namespace latte::cli {

/// One changing line on a terminal's standard error; silent where standard error is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(const Arguments& arguments);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(std::string_view text);
  void clear();

 private:
  bool on_;
  bool shown_ = false;
};

}  // namespace latte::cli
