#include "text/jinja_print.h"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/fail.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

bool is_printable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

// Python's repr() of a string.
void append_quoted(std::string& out, std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  out.push_back(quote);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const char32_t c = step.code_point;
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(text.substr(at, step.length));
    } else if (c < 0x100) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(c));
    } else if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<std::uint32_t>(c));
    }
    at += step.length;
  }
  out.push_back(quote);
}

void append_repr(Runtime& runtime, const Value& value, std::string& out);

void append_text(Runtime& runtime, const Value& value, std::string& out) {
  switch (value.kind()) {
    case ValueKind::kUndefined:
      return;
    case ValueKind::kNone:
      out += "None";
      return;
    case ValueKind::kBool:
      out += value.boolean() ? "True" : "False";
      return;
    case ValueKind::kInt:
      out += std::to_string(value.integer());
      return;
    case ValueKind::kFloat:
      out += float_text(value.number());
      return;
    case ValueKind::kString:
      out += value.string();
      return;
    case ValueKind::kList: {
      const List& list = value.list();
      out.push_back(list.is_tuple ? '(' : '[');
      for (std::size_t i = 0; i < list.items.size() && !runtime.failed(); ++i) {
        if (i > 0) out += ", ";
        append_repr(runtime, list.items[i], out);
      }
      if (list.is_tuple && list.items.size() == 1) out.push_back(',');
      out.push_back(list.is_tuple ? ')' : ']');
      return;
    }
    case ValueKind::kDict: {
      out.push_back('{');
      bool first = true;
      for (const auto& [key, item] : value.dict().entries) {
        if (runtime.failed()) return;
        if (!std::exchange(first, false)) out += ", ";
        append_repr(runtime, key, out);
        out += ": ";
        append_repr(runtime, item, out);
      }
      out.push_back('}');
      return;
    }
    default:
      // What Jinja prints here holds an address or names of Python; no template means it.
      runtime.refuse(fmt::format("{} cannot be printed", with_article(value.type_name())));
  }
}

void append_repr(Runtime& runtime, const Value& value, std::string& out) {
  // Shared parts may make the text far longer than the value.
  const std::size_t before = out.size();
  if (value.is_string()) {
    append_quoted(out, value.string());
  } else if (value.is_undefined()) {
    out += "Undefined";
  } else {
    append_text(runtime, value, out);
  }
  if (!runtime.charge(out.size() - before + kWorkPerNode)) return;
  if (out.size() > kMaxOutputBytes) runtime.refuse(fmt::format("a text of more than {} bytes", kMaxOutputBytes));
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  std::string run(const Value& value) {
    write(value, 0);
    return std::move(out_);
  }

 private:
  void newline(int level) {
    if (!style_.indented) return;
    out_.push_back('\n');
    for (int i = 0; i < level; ++i) {
      if (!runtime_.append(out_, style_.indent)) return;
    }
  }

  void separator(int level) {
    if (!runtime_.append(out_, style_.item_separator)) return;
    newline(level);
  }

  void write_string(std::string_view text) {
    if (!runtime_.charge(text.size())) return;
    out_.push_back('"');
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Step step = decode_utf8(text, at);
      const auto c = static_cast<std::uint32_t>(step.code_point);
      static constexpr std::string_view kNames = "\"\\\n\r\t\f\b";
      static constexpr std::string_view kLetters = "\"\\nrtfb";
      const std::size_t known = c < 0x80 ? kNames.find(static_cast<char>(c)) : std::string_view::npos;
      if (known != std::string_view::npos) {
        out_.push_back('\\');
        out_.push_back(kLetters[known]);
      } else if (c < 0x20 || (style_.ensure_ascii && c > 0x7F && c < 0x10000)) {
        out_ += fmt::format("\\u{:04x}", c);
      } else if (style_.ensure_ascii && c >= 0x10000) {
        out_ += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF));
      } else {
        out_.append(text.substr(at, step.length));
      }
      at += step.length;
    }
    out_.push_back('"');
    if (out_.size() > kMaxOutputBytes) runtime_.refuse(fmt::format("a text of more than {} bytes", kMaxOutputBytes));
  }

  void write_list(const List& list, int level) {
    out_.push_back('[');
    for (std::size_t i = 0; i < list.items.size() && !runtime_.failed(); ++i) {
      if (i == 0) {
        newline(level + 1);
      } else {
        separator(level + 1);
      }
      write(list.items[i], level + 1);
    }
    if (!list.items.empty()) newline(level);
    out_.push_back(']');
  }

  std::string key_text(const Value& key) {
    if (key.is_string()) return key.string();
    if (key.is_none()) return "null";
    if (key.is(ValueKind::kBool)) return key.boolean() ? "true" : "false";
    if (key.is_number()) return to_text(runtime_, key);
    runtime_.refuse(fmt::format("{} cannot be the key of a JSON object", with_article(key.type_name())));
    return {};
  }

  void write_dict(const Dict& dict, int level) {
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(),
                       [this](const auto* a, const auto* b) { return key_text(a->first) < key_text(b->first); });
    }
    out_.push_back('{');
    for (std::size_t i = 0; i < entries.size() && !runtime_.failed(); ++i) {
      if (i == 0) {
        newline(level + 1);
      } else {
        separator(level + 1);
      }
      write_string(key_text(entries[i]->first));
      if (!runtime_.append(out_, style_.key_separator)) return;
      write(entries[i]->second, level + 1);
    }
    if (!entries.empty()) newline(level);
    out_.push_back('}');
  }

  void write(const Value& value, int level) {
    if (!runtime_.charge(kWorkPerNode)) return;
    switch (value.kind()) {
      case ValueKind::kNone:
        out_ += "null";
        return;
      case ValueKind::kBool:
        out_ += value.boolean() ? "true" : "false";
        return;
      case ValueKind::kInt:
        out_ += std::to_string(value.integer());
        return;
      case ValueKind::kFloat: {
        const double number = value.number();
        out_ += std::isnan(number)   ? "NaN"
                : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity")
                                     : float_text(number);
        return;
      }
      case ValueKind::kString:
        write_string(value.string());
        return;
      case ValueKind::kList:
        write_list(value.list(), level);
        return;
      case ValueKind::kDict:
        write_dict(value.dict(), level);
        return;
      default:
        runtime_.refuse(fmt::format("{} cannot be written as JSON", with_article(value.type_name())));
    }
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
};

}  // namespace

std::string float_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto written = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<std::size_t>(written.ptr - buffer));
  const std::size_t e = shortest.find('e');
  int exponent = 0;
  const char* exponent_text = shortest.data() + e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_text, shortest.data() + shortest.size(), exponent);
  std::string digits;
  for (const char c : shortest.substr(0, e)) {
    if (c >= '0' && c <= '9') digits.push_back(c);
  }
  const std::string_view sign = shortest[0] == '-' ? "-" : "";
  // Python switches to an exponent outside of [1e-4, 1e16).
  if (exponent < -4 || exponent >= 16) {
    const std::string_view point = digits.size() > 1 ? "." : "";
    return fmt::format("{}{}{}{}e{}{:02}", sign, digits[0], point, std::string_view(digits).substr(1),
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0)
    return fmt::format("{}0.{}{}", sign, std::string(static_cast<std::size_t>(-exponent - 1), '0'), digits);
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return fmt::format("{}{}{}.0", sign, digits, std::string(whole - digits.size(), '0'));
  return fmt::format("{}{}.{}", sign, digits.substr(0, whole), digits.substr(whole));
}

std::string to_text(Runtime& runtime, const Value& value) {
  std::string out;
  append_text(runtime, value, out);
  return out;
}

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  return JsonWriter(runtime, style).run(value);
}

}  // namespace latte::jinja
