#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte::cli {

/// What reading a message came to.
enum class Input {
  kMessage,
  kEnd,          ///< end of the input, Ctrl-D on an empty line
  kInterrupted,  ///< Ctrl-C: what was typed so far is dropped
};

/// Lines of standard input: through a line editor on a terminal, as they are from a pipe or a file.
class LineReader {
 public:
  /// `history_file`: lines typed are read from it and kept in it; empty: for this session alone. Only a terminal has a
  /// history. Errors: a history file that cannot be read.
  static Result<LineReader> open(const std::string& history_file);

  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) = delete;
  ~LineReader();

  bool on_terminal() const { return editor_ != nullptr; }

  /// One message: a line; lines that end in a backslash go on in the next one; from """ to """ all lines belong to it.
  Input read(std::string& message);
  /// Writes the history file. Errors: it cannot be written.
  Status save_history() const;

 private:
  struct Editor;
  explicit LineReader(std::unique_ptr<Editor> editor, std::string history_file);
  Input read_line(std::string_view prompt, std::string& line);

  std::unique_ptr<Editor> editor_;
  std::string history_file_;
};

}  // namespace latte::cli
