#include "token_ids.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "outcome.h"

namespace latte::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::int64_t kMostRows = std::int64_t{1} << 24;

Error invalid(std::string message) { return {ErrorKind::kInvalidInput, std::move(message)}; }

// A list is numbers with commas or white space between, in brackets or not: JSON lists of numbers are one case.
Result<std::vector<std::int32_t>> parse_numbers(std::string_view text, std::string_view source) {
  std::vector<std::int32_t> ids;
  const auto skip_space = [&] {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  };
  skip_space();
  const bool bracketed = text.starts_with('[');
  if (bracketed) text.remove_prefix(1);
  skip_space();
  while (!text.empty() && text.front() != ']') {
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const auto length = static_cast<std::size_t>(end - text.data());
    const bool ended =
        length == text.size() || std::string_view(",] \t\r\n").find(text[length]) != std::string_view::npos;
    if (code != std::errc() || !ended || value < 0 || value > std::numeric_limits<std::int32_t>::max()) {
      constexpr std::size_t kShown = 32;
      const std::string_view word = text.substr(0, text.find_first_of(",] \t\r\n"));
      std::string shown;
      for (const char c : word.substr(0, kShown)) shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
      if (word.size() > kShown) shown += "...";
      return invalid(fmt::format("{}: \"{}\" after {} ids, expected token ids from 0 to 2147483647 like 1,2,3", source,
                                 shown, ids.size()));
    }
    ids.push_back(static_cast<std::int32_t>(value));
    text.remove_prefix(length);
    skip_space();
    const bool comma = text.starts_with(',');
    if (comma) text.remove_prefix(1);
    skip_space();
    if (comma && (text.empty() || text.front() == ']'))
      return invalid(fmt::format("{}: the list ends in a comma, expected another id", source));
  }
  if (bracketed != text.starts_with(']'))
    return invalid(fmt::format("{}: brackets of the list do not match, expected [1, 2, 3] or 1,2,3", source));
  if (bracketed) text.remove_prefix(1);
  skip_space();
  if (!text.empty()) return invalid(fmt::format("{}: text after the list of ids, expected one list", source));
  if (ids.empty()) return invalid(fmt::format("{}: no ids, expected at least one", source));
  return ids;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
  const File owned(path == "-" ? nullptr : std::fopen(path.c_str(), "rb"),
                   [](std::FILE* file) { return file == nullptr ? 0 : std::fclose(file); });
  std::FILE* file = path == "-" ? stdin : owned.get();
  if (file == nullptr)
    return Error{ErrorKind::kNotFound, fmt::format("{}: {}, expected a readable file", path, std::strerror(errno))};
  struct stat status {};
  const bool endless = ::fstat(::fileno(file), &status) == 0 && (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
  if (endless && path != "-" && ::isatty(::fileno(file)) == 0)
    return invalid(fmt::format("{}: a device, expected a file, a pipe or - for standard input", path));
  std::string content;
  char block[1 << 16];
  while (const std::size_t got = std::fread(block, 1, sizeof(block), file)) {
    content.append(block, got);
    if (content.size() > kMostBytes) return invalid(fmt::format("{}: more than 1 GiB, expected a smaller file", path));
  }
  if (std::ferror(file) != 0)
    return Error{ErrorKind::kIo, fmt::format("{}: {}, expected a readable file", path, std::strerror(errno))};
  return content;
}

Result<std::vector<std::int32_t>> parse_token_ids(const std::string& argument) {
  if (!argument.starts_with('@')) return parse_numbers(argument, "--ids");
  const std::string path = argument.substr(1);
  Result<std::string> content = read_file(path);
  if (!content.ok()) return content.error();
  return parse_numbers(*content, path);
}

int ids_refused(const std::string& argument, const Error& error) {
  return argument.starts_with('@') ? failed(error) : misused(error);
}

Result<std::vector<int>> parse_steps(const std::string& argument) {
  std::vector<int> steps;
  std::int64_t total = 0;
  std::string_view rest = argument;
  const Error malformed = invalid(
      fmt::format("--steps \"{}\": expected row counts like 48,1x8, at most {} rows in all", argument, kMostRows));
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    std::int64_t rows = 0, times = 1;
    const char* const end = part.data() + part.size();
    auto read = std::from_chars(part.data(), end, rows);
    if (read.ec == std::errc() && read.ptr != end && *read.ptr == 'x') read = std::from_chars(read.ptr + 1, end, times);
    if (read.ec != std::errc() || read.ptr != end || rows < 1 || times < 1) return malformed;
    if (rows > kMostRows || times > kMostRows || rows * times > kMostRows - total) return malformed;
    total += rows * times;
    steps.insert(steps.end(), static_cast<std::size_t>(times), static_cast<int>(rows));
    if (part.size() == rest.size()) return steps;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace latte::cli
