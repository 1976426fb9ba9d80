#pragma once

#include <string>
#include <string_view>

#include "latte/error.h"

namespace latte::cli {

inline constexpr int kFailed = 1;
inline constexpr int kMisused = 2;
inline constexpr int kInterrupted = 130;

/// Prints `error: ...` as one line on standard error and returns kFailed.
int failed(const Error& error);
/// The same for a call that makes no sense; returns kMisused.
int misused(const Error& error);
int misused(std::string_view message);
/// Writes `text` to standard error and to the log file, if one is open.
void tell(std::string_view text);
/// From here on what goes to standard error is also appended to this file. Errors: it cannot be written.
Status open_log(const std::string& path);
/// Prints `warning: ...` on standard error.
void warn(std::string_view message);
/// Warns that others use the machine; `consequence` is what that does to what was measured.
void warn_busy(double load_average, int threads, std::string_view consequence);
/// Prints `note: ...` on standard error: what -v shows.
void note(std::string_view message);

/// Writes `text` to standard output and flushes. A full disk or the like is an error.
Status print(std::string_view text);
/// print() with the exit code it deserves.
int finish_with(std::string_view text);

}  // namespace latte::cli
