#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <utility>

#include "rivals.h"
#include "unknown_option.h"

namespace latte::cli {
namespace {

Error usage(std::string message) { return {ErrorKind::kInvalidInput, std::move(message)}; }

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool listed(std::string_view word, std::string_view choices) {
  const std::vector<std::string_view> words = words_of(choices);
  return std::find(words.begin(), words.end(), word) != words.end();
}

const OptionSpec* find_option(const CommandSpec& command, std::string_view spelling) {
  for (const OptionSpec& option : option_table()) {
    if ((option.commands & only(command.command)) != 0 && spells(option, spelling)) return &option;
  }
  return nullptr;
}

std::string shape_error(const OptionSpec& option, std::string_view value) {
  switch (option.kind) {
    case ValueKind::kInteger: {
      const std::optional<std::int64_t> whole = number<std::int64_t>(value);
      const std::optional<std::uint64_t> wide = number<std::uint64_t>(value);
      const bool in_range =
          whole.has_value() ? static_cast<double>(*whole) >= option.least && static_cast<double>(*whole) <= option.most
                            : wide.has_value() && static_cast<double>(*wide) <= option.most;
      if (in_range) return "";
      // The largest seed has no double of its own.
      const bool all_64_bits = option.most >= static_cast<double>(std::numeric_limits<std::uint64_t>::max());
      return fmt::format("a whole number from {:.0f} to {}", option.least,
                         all_64_bits ? fmt::format("{}", std::numeric_limits<std::uint64_t>::max())
                                     : fmt::format("{:.0f}", option.most));
    }
    case ValueKind::kReal: {
      const std::optional<double> real = number<double>(value);
      if (real.has_value() && std::isfinite(*real) && *real >= option.least && *real <= option.most &&
          (*real == 0 || *real >= option.least_above_zero))
        return "";
      if (!option.range.empty()) return std::string(option.range);
      return fmt::format("a number from {} to {}", option.least, option.most);
    }
    case ValueKind::kChoice:
      return listed(value, option.value) ? "" : fmt::format("one of {}", option.value);
    case ValueKind::kText:
      if (value.empty() && (option.value.starts_with("FILE") || option.value.starts_with("DIR"))) return "a name";
      // A file called "-" is nobody's wish.
      return option.value == "FILE" && value == "-" ? "the name of a file, for it has no standard input or output" : "";
    case ValueKind::kFlag:
      return "";
    case ValueKind::kList:
      return value.empty() ? "some text" : "";
  }
  return "";
}

}  // namespace

Status Arguments::put(const OptionSpec& option, std::string_view spelling, std::string value) {
  if (const std::string expected = shape_error(option, value); !expected.empty()) {
    return usage(fmt::format("{} \"{}\": expected {}", spelling, value, expected));
  }
  std::vector<std::string>& values = values_[option.name];
  if (option.kind != ValueKind::kList) values.clear();
  values.push_back(std::move(value));
  return {};
}

Result<Arguments> Arguments::parse(const CommandSpec& command, std::span<char* const> words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      arguments.wants_help_ = true;
      return arguments;
    }
    std::optional<std::string_view> attached;
    if (const std::size_t equals = word.find('='); word.starts_with("--") && equals != std::string_view::npos) {
      attached = word.substr(equals + 1);
      word = word.substr(0, equals);
    }
    const OptionSpec* option = find_option(command, word);
    if (option == nullptr) {
      if (!word.starts_with("-") && !command.operand.empty() && arguments.operand_.empty()) {
        if (!listed(word, command.operand)) {
          return usage(fmt::format("latte {} \"{}\": expected one of {}", command.name, words[i], command.operand));
        }
        arguments.operand_ = word;
        continue;
      }
      if (!word.starts_with("-"))
        return usage(fmt::format("unexpected argument \"{}\", expected an option of latte {}", word, command.name));
      return usage(unknown_option(command, word));
    }
    if (option->kind == ValueKind::kFlag) {
      if (attached.has_value()) return usage(fmt::format("{} takes no value, got \"{}\"", word, *attached));
      arguments.values_[option->name] = {"1"};
      continue;
    }
    if (!attached.has_value()) {
      if (i + 1 == words.size()) return usage(fmt::format("{} expects a value ({})", word, option->value));
      attached = words[++i];
    }
    if (Status put = arguments.put(*option, word, std::string(*attached)); !put.ok()) return put.error();
  }
  if (!command.operand.empty() && arguments.operand_.empty())
    return usage(fmt::format("latte {} expects one of {}", command.name, command.operand));
  if (Status read = arguments.read_environment(command); !read.ok()) return read.error();
  if (arguments.has("--cache-type") && arguments.has("--kv-bits")) {
    return usage(fmt::format("--cache-type {} and --kv-bits {}: both say what cached rows are, expected one of them",
                             arguments.text_or("--cache-type", ""), arguments.text_or("--kv-bits", "")));
  }
  return arguments;
}

Status Arguments::read_environment(const CommandSpec& command) {
  std::vector<std::string_view> answered;
  for (const auto& rivals : kRivals) {
    if (std::any_of(rivals.begin(), rivals.end(), [&](std::string_view name) { return has(name); }))
      answered.insert(answered.end(), rivals.begin(), rivals.end());
  }
  for (const OptionSpec& option : option_table()) {
    if ((option.commands & only(command.command)) == 0 || has(option.name)) continue;
    if (std::find(answered.begin(), answered.end(), option.name) != answered.end()) continue;
    const std::string name = environment_name(option);
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    if (option.kind == ValueKind::kFlag) {
      const std::string_view word = value;
      if (word == "1" || word == "true" || word == "on")
        values_[option.name] = {"1"};
      else if (word != "0" && word != "false" && word != "off")
        return usage(fmt::format("{}=\"{}\": expected 1 or 0", name, word));
      continue;
    }
    if (Status put_value = put(option, name, value); !put_value.ok()) return put_value.error();
  }
  return {};
}

std::optional<std::string> Arguments::text(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::string Arguments::text_or(std::string_view name, std::string_view otherwise) const {
  return text(name).value_or(std::string(otherwise));
}

std::optional<std::int64_t> Arguments::integer(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  return value.has_value() ? number<std::int64_t>(*value) : std::nullopt;
}

std::optional<std::uint64_t> Arguments::unsigned_integer(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  return value.has_value() ? number<std::uint64_t>(*value) : std::nullopt;
}

std::optional<double> Arguments::real(std::string_view name) const {
  const std::optional<std::string> value = text(name);
  return value.has_value() ? number<double>(*value) : std::nullopt;
}

std::vector<std::string> Arguments::list(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

}  // namespace latte::cli
