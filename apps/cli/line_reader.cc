#include "line_reader.h"

#include <fmt/format.h>
#include <histedit.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstring>
#include <cwchar>
#include <iostream>
#include <utility>

#include "interrupts.h"

namespace latte::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr const char* kFirstPrompt = "> ";
constexpr const char* kNextPrompt = ". ";
constexpr int kHistoryLines = 1000;
constexpr char kEndOfFile = '\x04';  // Ctrl-D

/// Bytes that wait on the terminal to be read.
int waiting_bytes() {
  int count = 0;
  return ioctl(STDIN_FILENO, FIONREAD, &count) == 0 ? count : 0;
}

}  // namespace

/// libedit and its history.
struct LineReader::Editor {
  EditLine* line = nullptr;
  History* history = nullptr;
  std::string prompt;
  const GracefulInterrupt* interrupt = nullptr;  ///< while a line is read
  bool interrupted = false;
  bool line_begun = false;
  int typed_ahead = 0;  ///< bytes that came before the terminal gave characters one by one

  Editor() = default;
  Editor(const Editor&) = delete;
  Editor& operator=(const Editor&) = delete;
  ~Editor() {
    if (line != nullptr) el_end(line);
    if (history != nullptr) history_end(history);
  }

  static Editor& of(EditLine* edited) {
    void* self = nullptr;
    el_get(edited, EL_CLIENTDATA, &self);
    return *static_cast<Editor*>(self);
  }

  static char* prompt_of(EditLine* edited) { return of(edited).prompt.data(); }

  /// One character for libedit: 1, 0 at the end, -1 when the user interrupts.
  static int next_character(EditLine* edited, wchar_t* out) {
    Editor& self = of(edited);
    if (!std::exchange(self.line_begun, true)) self.typed_ahead = waiting_bytes();
    std::mbstate_t state{};
    while (true) {
      pollfd input{STDIN_FILENO, POLLIN, 0};
      constexpr int kLookAgainMs = 100;  // a signal just before the wait is seen this late
      const int ready = poll(&input, 1, kLookAgainMs);
      if (self.interrupt->requested()) {
        self.interrupted = true;
        return -1;
      }
      if (ready <= 0) continue;
      char byte = 0;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return 0;
      // A terminal that reads whole lines keeps Ctrl-D as a null, which libedit would take for Ctrl-Space.
      if (self.typed_ahead > 0 && self.typed_ahead-- > 0 && byte == 0) byte = kEndOfFile;
      const std::size_t whole = std::mbrtowc(out, &byte, 1, &state);
      if (whole == static_cast<std::size_t>(-2)) continue;
      if (whole == static_cast<std::size_t>(-1)) {
        state = {};
        continue;  // no character of this terminal's encoding
      }
      return 1;
    }
  }

  void remember(const std::string& text) {
    HistEvent event{};
    ::history(history, &event, H_ENTER, text.c_str());
  }
};

LineReader::LineReader(std::unique_ptr<Editor> editor, std::string history_file)
    : editor_(std::move(editor)), history_file_(std::move(history_file)) {}
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

Result<LineReader> LineReader::open(const std::string& history_file) {
  if (isatty(STDIN_FILENO) == 0) return LineReader(nullptr, "");
  // libedit takes characters apart by the locale; a terminal without one is taken to write UTF-8.
  const char* locale = std::setlocale(LC_CTYPE, "");
  if (locale == nullptr || std::strcmp(locale, "C") == 0 || std::strcmp(locale, "POSIX") == 0)
    std::setlocale(LC_CTYPE, "C.UTF-8");
  auto editor = std::make_unique<Editor>();
  editor->history = history_init();
  editor->line = el_init("latte", stdin, stderr, stderr);
  if (editor->history == nullptr || editor->line == nullptr)
    return Error{ErrorKind::kIo, "the line editor did not start on this terminal: pipe the messages in instead"};
  HistEvent event{};
  history(editor->history, &event, H_SETSIZE, kHistoryLines);
  history(editor->history, &event, H_SETUNIQUE, 1);
  el_set(editor->line, EL_CLIENTDATA, static_cast<void*>(editor.get()));
  el_set(editor->line, EL_PROMPT, &Editor::prompt_of);
  el_set(editor->line, EL_SIGNAL, 0);
  el_set(editor->line, EL_EDITOR, "emacs");
  el_set(editor->line, EL_HIST, history, editor->history);
  el_set(editor->line, EL_GETCFN, &Editor::next_character);
  if (!history_file.empty() && access(history_file.c_str(), F_OK) == 0 &&
      history(editor->history, &event, H_LOAD, history_file.c_str()) < 0) {
    return Error{
        ErrorKind::kInvalidInput,
        fmt::format("{}: is no history of this line editor, expected one or a new path for --history", history_file)};
  }
  return LineReader(std::move(editor), history_file);
}

Status LineReader::save_history() const {
  if (editor_ == nullptr || history_file_.empty()) return {};
  HistEvent event{};
  if (history(editor_->history, &event, H_SAVE, history_file_.c_str()) >= 0) return {};
  return Error{ErrorKind::kIo,
               fmt::format("{}: {}, expected to write the history there", history_file_, std::strerror(errno))};
}

Input LineReader::read_line(std::string_view prompt, std::string& line) {
  line.clear();
  if (editor_ == nullptr) return std::getline(std::cin, line) ? Input::kMessage : Input::kEnd;
  const GracefulInterrupt interrupt(GracefulInterrupt::Second::kNothing);
  editor_->interrupt = &interrupt;
  editor_->interrupted = false;
  editor_->line_begun = false;
  editor_->prompt = prompt;
  el_resize(editor_->line);
  int count = 0;
  const char* typed = el_gets(editor_->line, &count);
  editor_->interrupt = nullptr;
  if (editor_->interrupted) {
    el_reset(editor_->line);
    std::fputs("\n", stderr);
    return Input::kInterrupted;
  }
  if (typed == nullptr || count <= 0) return Input::kEnd;
  line.assign(typed, static_cast<std::size_t>(count));
  if (line.ends_with('\n')) line.pop_back();
  if (!line.empty()) editor_->remember(line);
  return Input::kMessage;
}

Input LineReader::read(std::string& message) {
  message.clear();
  std::string line;
  bool begun = false, quoted = false, skip_break = false;
  while (true) {
    const Input input = read_line(begun ? kNextPrompt : kFirstPrompt, line);
    if (input == Input::kInterrupted) return input;
    if (input == Input::kEnd) return begun ? Input::kMessage : input;  // the end of the input ends a message, too
    if (line.ends_with('\r')) line.pop_back();
    std::string_view rest = line;
    if (begun && !std::exchange(skip_break, false)) message += '\n';
    if (!begun && rest.starts_with(kQuotes)) {
      quoted = true;
      rest.remove_prefix(kQuotes.size());
      skip_break = rest.empty();  // """ alone: the text begins in the next line
    }
    begun = true;
    const std::string_view mark = quoted ? kQuotes : std::string_view("\\");
    const bool marked = rest.ends_with(mark);
    if (marked) rest.remove_suffix(mark.size());
    message += rest;
    if (marked == quoted) return Input::kMessage;  // quotes end a message, a backslash continues it
  }
}

}  // namespace latte::cli
