#include "text/jinja_format.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include "base/fail.h"
#include "text/jinja_print.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

constexpr int kWidest = 1000;
constexpr int kMostDigits = 100;

struct Conversion {
  std::string flags;
  int width = 0;
  int precision = -1;
  char type = 0;
};

// A number that stands at the start of `text`, and is taken off it; 0 where there is none.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end == text.data() || text.front() == '-') return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc() ? number : kWidest + 1;
}

// What stands behind a percent sign; type 0 when it is not understood.
Conversion take_conversion(std::string_view& text) {
  Conversion conversion;
  while (!text.empty() && std::string_view("-+ #0").find(text.front()) != std::string_view::npos) {
    if (conversion.flags.find(text.front()) == std::string::npos) conversion.flags += text.front();
    text.remove_prefix(1);
  }
  conversion.width = take_number(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    conversion.precision = take_number(text);
  }
  if (text.empty() || conversion.width > kWidest || conversion.precision > kMostDigits) return conversion;
  if (std::string_view("sdiuxXofFeEgG%").find(text.front()) == std::string_view::npos) return conversion;
  conversion.type = text.front();
  text.remove_prefix(1);
  return conversion;
}

std::string format_text(const Conversion& conversion, std::string text) {
  if (conversion.precision >= 0) {
    text.resize(code_point_offset(text, static_cast<std::size_t>(conversion.precision)));
  }
  const auto width = static_cast<std::size_t>(conversion.width);
  const std::size_t length = count_code_points(text);
  if (length >= width) return text;
  const std::string padding(width - length, ' ');
  return conversion.flags.find('-') != std::string::npos ? text + padding : padding + text;
}

template <class Number>
std::string format_number(const Conversion& conversion, const char* type, Number number) {
  std::string form = "%" + conversion.flags;
  if (conversion.width > 0) form += std::to_string(conversion.width);
  if (conversion.precision >= 0) form += "." + std::to_string(conversion.precision);
  form += type;
  // The longest double has 309 digits before the point.
  char buffer[kWidest + kMostDigits + 400];
  const int length = std::snprintf(buffer, sizeof buffer, form.c_str(), number);
  return std::string(buffer, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof buffer) - 1)));
}

// One value, or nothing when it is of the wrong type.
bool format_value(Runtime& runtime, const Conversion& conversion, const Value& value, std::string& out) {
  switch (conversion.type) {
    case 's':
      out = format_text(conversion, to_text(runtime, value));
      return true;
    case 'd':
    case 'i':
    case 'u': {
      const bool whole = value.is_integral();
      if (!whole && !(value.is_number() && value.number() > -9e18 && value.number() < 9e18)) return false;
      const auto number = whole ? value.integer() : static_cast<std::int64_t>(value.number());
      out = format_number(conversion, "lld", static_cast<long long>(number));
      return true;
    }
    case 'x':
    case 'X':
    case 'o': {
      if (!value.is_integral() || value.integer() < 0) return false;
      const char type[] = {'l', 'l', conversion.type, '\0'};
      out = format_number(conversion, type, static_cast<unsigned long long>(value.integer()));
      return true;
    }
    default: {
      if (!value.is_number()) return false;
      const char type[] = {conversion.type, '\0'};
      out = format_number(conversion, type, value.number());
      return true;
    }
  }
}

}  // namespace

Value format_percent(Runtime& runtime, std::string_view text, const std::vector<Value>& values) {
  std::string out;
  std::size_t next = 0;
  while (!text.empty()) {
    const std::size_t percent = text.find('%');
    if (!runtime.append(out, text.substr(0, percent))) return {};
    if (percent == std::string_view::npos) break;
    text.remove_prefix(percent + 1);
    const Conversion conversion = take_conversion(text);
    if (conversion.type == 0) return runtime.refuse("a format after % that is not supported");
    std::string piece = "%";
    if (conversion.type != '%') {
      if (next == values.size()) return runtime.refuse("not enough arguments for the format string");
      const Value& value = values[next++];
      if (!format_value(runtime, conversion, value, piece)) {
        return runtime.refuse(fmt::format("%{} of {}", conversion.type, with_article(value.type_name())));
      }
    }
    if (!runtime.append(out, piece)) return {};
  }
  if (next < values.size()) return runtime.refuse("not all arguments converted during string formatting");
  return runtime.make_string(std::move(out));
}

}  // namespace latte::jinja
