#include "text/jinja_methods.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "base/fail.h"
#include "text/jinja_operators.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

constexpr std::array<std::string_view, 14> kChangingMethods = {"append",     "clear",   "extend",  "insert",  "pop",
                                                               "remove",     "reverse", "sort",    "update",  "popitem",
                                                               "setdefault", "add",     "discard", "fromkeys"};

bool changes_value(const Value& self, std::string_view name) {
  return (self.is_list() || self.is_dict()) &&
         std::find(kChangingMethods.begin(), kChangingMethods.end(), name) != kChangingMethods.end();
}

// One call: the value, the arguments, and what a method needs to read them.
struct MethodCall {
  Runtime& runtime;
  const Value& self;
  const Arguments& arguments;

  const std::string& text() const { return self.string(); }

  // A string argument; the empty string and an error when it is missing or something else.
  std::string string_argument(std::size_t index, std::string_view name) const {
    const Value* value = arguments.find(index, name);
    if (value != nullptr && value->is_string()) return value->string();
    runtime.refuse(fmt::format("argument {} is {}, expected a str", name,
                               with_article(value == nullptr ? "missing value" : value->type_name())));
    return {};
  }

  std::int64_t integer_argument(std::size_t index, std::string_view name, std::int64_t fallback) const {
    const Value* value = arguments.find(index, name);
    if (value == nullptr || value->is_none()) return fallback;
    if (value->is_integral()) return value->integer();
    runtime.refuse(fmt::format("argument {} is {}, expected an int", name, with_article(value->type_name())));
    return fallback;
  }

  // Characters to strip, or null for white space.
  const std::string* strip_argument() const {
    const Value* value = arguments.find(0, "chars");
    if (value == nullptr || value->is_none()) return nullptr;
    if (value->is_string()) return &value->string();
    runtime.refuse(fmt::format("argument chars is {}, expected a str", with_article(value->type_name())));
    return nullptr;
  }
};

using Method = std::function<Value(const MethodCall&)>;
using MethodTable = std::unordered_map<std::string_view, Method>;

Value strip_method(const MethodCall& call, bool left, bool right) {
  return call.runtime.make_string(std::string(strip(call.text(), call.strip_argument(), left, right)));
}

std::vector<Value> split_at_spaces(std::string_view text, std::int64_t limit) {
  std::vector<Value> parts;
  std::string_view rest = strip(text, nullptr, true, false);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.emplace_back(std::string(rest));
      break;
    }
    std::size_t end = 0;
    while (end < rest.size()) {
      const Utf8Step step = decode_utf8(rest, end);
      if (is_space(step.code_point, true)) break;
      end += step.length;
    }
    parts.emplace_back(std::string(rest.substr(0, end)));
    rest = strip(rest.substr(end), nullptr, true, false);
  }
  return parts;
}

std::vector<Value> reverse_split_at_spaces(std::string_view text, std::int64_t limit) {
  std::vector<Value> parts;
  std::string_view rest = strip(text, nullptr, false, true);
  while (!rest.empty()) {
    if (limit >= 0 && static_cast<std::int64_t>(parts.size()) == limit) {
      parts.emplace_back(std::string(rest));
      break;
    }
    std::size_t begin = rest.size();
    while (begin > 0) {
      const std::size_t previous = previous_code_point(rest, begin);
      if (is_space(decode_utf8(rest, previous).code_point, true)) break;
      begin = previous;
    }
    parts.emplace_back(std::string(rest.substr(begin)));
    rest = strip(rest.substr(0, begin), nullptr, false, true);
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split_method(const MethodCall& call, bool from_right) {
  const Value* separator = call.arguments.find(0, "sep");
  const std::int64_t limit = call.integer_argument(1, "maxsplit", -1);
  const std::string_view text = call.text();
  if (!call.runtime.charge(text.size() * 8)) return {};
  if (separator == nullptr || separator->is_none()) {
    return call.runtime.make_list(from_right ? reverse_split_at_spaces(text, limit) : split_at_spaces(text, limit));
  }
  const std::string mark = call.string_argument(0, "sep");
  if (mark.empty()) return call.runtime.refuse("split with an empty separator");
  std::vector<Value> parts;
  std::size_t from = 0;
  std::size_t end = text.size();
  while (!call.runtime.failed() && (limit < 0 || static_cast<std::int64_t>(parts.size()) < limit)) {
    if (from_right) {
      const std::size_t found = find_last_text(call.runtime, text.substr(0, end), mark);
      if (found == std::string_view::npos) break;
      parts.emplace_back(std::string(text.substr(found + mark.size(), end - found - mark.size())));
      end = found;
    } else {
      const std::size_t found = find_text(call.runtime, text, mark, from);
      if (found == std::string_view::npos) break;
      parts.emplace_back(std::string(text.substr(from, found - from)));
      from = found + mark.size();
    }
  }
  parts.emplace_back(std::string(text.substr(from, end - from)));
  if (from_right) std::reverse(parts.begin(), parts.end());
  return call.runtime.make_list(std::move(parts));
}

Value splitlines(const MethodCall& call) {
  const Value* keep = call.arguments.find(0, "keepends");
  const bool keep_ends = keep != nullptr && keep->truthy();
  std::vector<Value> lines;
  const std::string& text = call.text();
  if (!call.runtime.charge(text.size() * 8)) return {};
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const char32_t c = step.code_point;
    std::size_t next = at + step.length;
    if ((c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      if (c == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.emplace_back(text.substr(begin, (keep_ends ? next : at) - begin));
      begin = next;
    }
    at = next;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return call.runtime.make_list(std::move(lines));
}

Value affix(const MethodCall& call, bool at_end) {
  const auto matches = [&](const std::string& part) {
    return at_end ? std::string_view(call.text()).ends_with(part) : std::string_view(call.text()).starts_with(part);
  };
  const Value* choices = call.arguments.find(0, "prefix");
  if (choices != nullptr && choices->is_list() && choices->list().is_tuple) {
    return std::any_of(choices->list().items.begin(), choices->list().items.end(),
                       [&](const Value& part) { return part.is_string() && matches(part.string()); });
  }
  return matches(call.string_argument(0, "prefix"));
}

// find, rfind and index: positions are code points.
Value find_method(const MethodCall& call, bool from_right, bool must_exist) {
  const std::string part = call.string_argument(0, "sub");
  const std::size_t found =
      from_right ? find_last_text(call.runtime, call.text(), part) : find_text(call.runtime, call.text(), part);
  if (found == std::string::npos) {
    return must_exist ? call.runtime.refuse("substring not found") : Value(std::int64_t{-1});
  }
  return static_cast<std::int64_t>(count_code_points(std::string_view(call.text()).substr(0, found)));
}

Value count_method(const MethodCall& call) {
  const std::string part = call.string_argument(0, "sub");
  if (part.empty()) return static_cast<std::int64_t>(count_code_points(call.text()) + 1);
  std::int64_t count = 0;
  for (std::size_t at = find_text(call.runtime, call.text(), part); at != std::string::npos && !call.runtime.failed();
       at = find_text(call.runtime, call.text(), part, at + part.size())) {
    ++count;
  }
  return count;
}

Value join_method(const MethodCall& call) {
  const Value* parts = call.arguments.find(0, "iterable");
  if (parts == nullptr) return call.runtime.refuse("join without a list");
  std::string text;
  bool first = true;
  for (const Value& part : iterate(call.runtime, *parts)) {
    if (!part.is_string()) {
      return call.runtime.refuse(fmt::format("join of {}, expected str", with_article(part.type_name())));
    }
    if (!std::exchange(first, false) && !call.runtime.append(text, call.text())) return {};
    if (!call.runtime.append(text, part.string())) return {};
  }
  return call.runtime.make_string(std::move(text));
}

Value partition(const MethodCall& call, bool from_right) {
  const std::string mark = call.string_argument(0, "sep");
  if (mark.empty()) return call.runtime.refuse("partition with an empty separator");
  const std::string& text = call.text();
  const std::size_t found = from_right ? find_last_text(call.runtime, text, mark) : find_text(call.runtime, text, mark);
  if (found == std::string::npos) {
    return from_right ? call.runtime.make_list({"", "", text}, true) : call.runtime.make_list({text, "", ""}, true);
  }
  return call.runtime.make_list({text.substr(0, found), mark, text.substr(found + mark.size())}, true);
}

enum class Align { kLeft, kRight, kCenter };

Value pad(const MethodCall& call, Align align) {
  const std::int64_t width = call.integer_argument(0, "width", 0);
  const Value* fill_argument = call.arguments.find(1, "fillchar");
  const std::string fill = fill_argument == nullptr ? " " : call.string_argument(1, "fillchar");
  if (count_code_points(fill) != 1) return call.runtime.refuse("argument fillchar, expected exactly one character");
  const auto size = static_cast<std::int64_t>(count_code_points(call.text()));
  if (width <= size) return call.self;
  if (static_cast<std::size_t>(width) > kMaxOutputBytes / 4) return call.runtime.refuse("a width that is too large");
  if (!call.runtime.charge(static_cast<std::size_t>(width))) return {};
  const std::int64_t space = width - size;
  // Python's centre puts the odd space left when the width is odd.
  const std::int64_t left = align == Align::kLeft    ? 0
                            : align == Align::kRight ? space
                                                     : space / 2 + (space & width & 1);
  std::string text;
  for (std::int64_t i = 0; i < left; ++i) text += fill;
  text += call.text();
  for (std::int64_t i = left; i < space; ++i) text += fill;
  return call.runtime.make_string(std::move(text));
}

Value zero_fill(const MethodCall& call) {
  const std::int64_t width = call.integer_argument(0, "width", 0);
  const std::string& text = call.text();
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  if (width <= size) return call.self;
  if (static_cast<std::size_t>(width) > kMaxOutputBytes / 4) return call.runtime.refuse("a width that is too large");
  const bool has_sign = !text.empty() && (text[0] == '-' || text[0] == '+');
  std::string filled = text.substr(0, has_sign ? 1 : 0);
  filled.append(static_cast<std::size_t>(width - size), '0').append(text, has_sign ? 1 : 0);
  return call.runtime.make_string(std::move(filled));
}

// isdigit and its kin: every character is in the class, and there is one.
template <class Predicate>
Value all_characters(const MethodCall& call, Predicate predicate) {
  const std::string& text = call.text();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (!predicate(step.code_point)) return false;
    at += step.length;
  }
  return !text.empty();
}

bool in_category(char32_t c, std::initializer_list<utf8proc_category_t> categories) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return std::find(categories.begin(), categories.end(), category) != categories.end();
}

bool is_letter(char32_t c) {
  return in_category(c, {UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LT, UTF8PROC_CATEGORY_LM,
                         UTF8PROC_CATEGORY_LO});
}

bool is_decimal(char32_t c) { return in_category(c, {UTF8PROC_CATEGORY_ND}); }

bool is_numeric(char32_t c) {
  return in_category(c, {UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NL, UTF8PROC_CATEGORY_NO});
}

// isupper and islower: one letter of that case at least, none of the other.
Value has_case(const MethodCall& call, utf8proc_category_t wanted, utf8proc_category_t other) {
  bool any = false;
  const std::string& text = call.text();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (in_category(step.code_point, {other, UTF8PROC_CATEGORY_LT})) return false;
    any = any || in_category(step.code_point, {wanted});
    at += step.length;
  }
  return any;
}

std::string title_case(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const auto c = static_cast<utf8proc_int32_t>(step.code_point);
    append_utf8(out, static_cast<char32_t>(in_word ? utf8proc_tolower(c) : utf8proc_totitle(c)));
    in_word = is_letter(step.code_point);
    at += step.length;
  }
  return out;
}

Value replace_method(const MethodCall& call) {
  return call.runtime.make_string(replace(call.runtime, call.text(), call.string_argument(0, "old"),
                                          call.string_argument(1, "new"), call.integer_argument(2, "count", -1)));
}

Value remove_affix(const MethodCall& call, bool at_end) {
  const std::string part = call.string_argument(0, at_end ? "suffix" : "prefix");
  std::string_view text = call.text();
  if (!part.empty() && (at_end ? text.ends_with(part) : text.starts_with(part))) {
    if (at_end) {
      text.remove_suffix(part.size());
    } else {
      text.remove_prefix(part.size());
    }
  }
  return call.runtime.make_string(std::string(text));
}

const MethodTable& string_methods() {
  static const MethodTable kTable = {
      {"strip", [](const MethodCall& call) { return strip_method(call, true, true); }},
      {"lstrip", [](const MethodCall& call) { return strip_method(call, true, false); }},
      {"rstrip", [](const MethodCall& call) { return strip_method(call, false, true); }},
      {"split", [](const MethodCall& call) { return split_method(call, false); }},
      {"rsplit", [](const MethodCall& call) { return split_method(call, true); }},
      {"splitlines", splitlines},
      {"startswith", [](const MethodCall& call) { return affix(call, false); }},
      {"endswith", [](const MethodCall& call) { return affix(call, true); }},
      {"removeprefix", [](const MethodCall& call) { return remove_affix(call, false); }},
      {"removesuffix", [](const MethodCall& call) { return remove_affix(call, true); }},
      {"replace", replace_method},
      {"find", [](const MethodCall& call) { return find_method(call, false, false); }},
      {"rfind", [](const MethodCall& call) { return find_method(call, true, false); }},
      {"index", [](const MethodCall& call) { return find_method(call, false, true); }},
      {"count", count_method},
      {"join", join_method},
      {"partition", [](const MethodCall& call) { return partition(call, false); }},
      {"rpartition", [](const MethodCall& call) { return partition(call, true); }},
      {"lower", [](const MethodCall& call) { return call.runtime.make_string(to_lower(call.text())); }},
      {"upper", [](const MethodCall& call) { return call.runtime.make_string(to_upper(call.text())); }},
      {"title", [](const MethodCall& call) { return call.runtime.make_string(title_case(call.text())); }},
      {"capitalize", [](const MethodCall& call) { return call.runtime.make_string(capitalize(call.text())); }},
      {"ljust", [](const MethodCall& call) { return pad(call, Align::kLeft); }},
      {"rjust", [](const MethodCall& call) { return pad(call, Align::kRight); }},
      {"center", [](const MethodCall& call) { return pad(call, Align::kCenter); }},
      {"zfill", zero_fill},
      {"isdigit", [](const MethodCall& call) { return all_characters(call, is_decimal); }},
      {"isdecimal", [](const MethodCall& call) { return all_characters(call, is_decimal); }},
      {"isnumeric", [](const MethodCall& call) { return all_characters(call, is_numeric); }},
      {"isalpha", [](const MethodCall& call) { return all_characters(call, is_letter); }},
      {"isalnum",
       [](const MethodCall& call) {
         return all_characters(call, [](char32_t c) { return is_letter(c) || is_numeric(c); });
       }},
      {"isspace",
       [](const MethodCall& call) { return all_characters(call, [](char32_t c) { return is_space(c, true); }); }},
      {"isupper", [](const MethodCall& call) { return has_case(call, UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LL); }},
      {"islower", [](const MethodCall& call) { return has_case(call, UTF8PROC_CATEGORY_LL, UTF8PROC_CATEGORY_LU); }},
  };
  return kTable;
}

Value dict_get(const MethodCall& call) {
  const Value* key = call.arguments.find(0, "key");
  if (key == nullptr) return call.runtime.refuse("get without a key");
  const Value* found = call.self.dict().find(call.runtime, *key);
  const Value* fallback = call.arguments.find(1, "default");
  return found != nullptr ? *found : fallback != nullptr ? *fallback : Value(nullptr);
}

Value dict_entries(const MethodCall& call, bool keys, bool values) {
  std::vector<Value> items;
  for (const auto& [key, value] : call.self.dict().entries) {
    items.push_back(keys && values ? call.runtime.make_list({key, value}, true) : keys ? key : value);
  }
  return call.runtime.make_list(std::move(items));
}

const MethodTable& dict_methods() {
  static const MethodTable kTable = {
      {"get", dict_get},
      {"items", [](const MethodCall& call) { return dict_entries(call, true, true); }},
      {"keys", [](const MethodCall& call) { return dict_entries(call, true, false); }},
      {"values", [](const MethodCall& call) { return dict_entries(call, false, true); }},
      {"copy", [](const MethodCall& call) { return call.self; }},
  };
  return kTable;
}

Value list_index(const MethodCall& call) {
  const Value* wanted = call.arguments.find(0, "value");
  const auto& items = call.self.list().items;
  for (std::size_t i = 0; wanted != nullptr && i < items.size(); ++i) {
    if (equal(call.runtime, items[i], *wanted)) return static_cast<std::int64_t>(i);
  }
  return call.runtime.refuse("index of a value that is not in the list");
}

Value list_count(const MethodCall& call) {
  const Value* wanted = call.arguments.find(0, "value");
  if (wanted == nullptr) return call.runtime.refuse("count without a value");
  const auto& items = call.self.list().items;
  return static_cast<std::int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) { return equal(call.runtime, item, *wanted); }));
}

const MethodTable& list_methods() {
  static const MethodTable kTable = {
      {"index", list_index}, {"count", list_count}, {"copy", [](const MethodCall& call) { return call.self; }}};
  return kTable;
}

Value loop_cycle(const MethodCall& call) {
  const auto& choices = call.arguments.positional;
  if (choices.empty()) return call.runtime.refuse("loop.cycle without values");
  return choices[call.self.loop()->index % choices.size()];
}

Value loop_changed(const MethodCall& call) {
  Loop& loop = *call.self.loop();
  const auto& now = call.arguments.positional;
  const bool same = loop.has_changed && equal(call.runtime, now, loop.last_changed);
  loop.has_changed = true;
  loop.last_changed = now;
  return !same;
}

const MethodTable& loop_methods() {
  static const MethodTable kTable = {{"cycle", loop_cycle}, {"changed", loop_changed}};
  return kTable;
}

const MethodTable* methods_of(const Value& self) {
  switch (self.kind()) {
    case ValueKind::kString:
      return &string_methods();
    case ValueKind::kDict:
      return &dict_methods();
    case ValueKind::kList:
      return &list_methods();
    case ValueKind::kLoop:
      return &loop_methods();
    default:
      return nullptr;
  }
}

template <class Map>
std::string map_code_points(std::string_view text, Map map) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    append_utf8(out, static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(step.code_point))));
    at += step.length;
  }
  return out;
}

}  // namespace

bool has_method(const Value& self, std::string_view name) {
  const MethodTable* table = methods_of(self);
  return table != nullptr && (table->count(name) > 0 || changes_value(self, name));
}

Value call_method(Runtime& runtime, const Value& self, std::string_view name, const Arguments& arguments) {
  if (runtime.failed()) return {};
  if (changes_value(self, name)) {
    return runtime.refuse(
        fmt::format("{}.{}() would change the value, which a template may not", self.type_name(), name));
  }
  const MethodTable* table = methods_of(self);
  const auto method = table == nullptr ? MethodTable::const_iterator() : table->find(name);
  if (table == nullptr || method == table->end()) {
    return runtime.refuse(fmt::format("{} has no method {}", with_article(self.type_name()), name));
  }
  if (self.is_string() && !runtime.charge(self.string().size() / 8)) return {};
  return method->second({runtime, self, arguments});
}

std::string_view strip(std::string_view text, const std::string* characters, bool left, bool right) {
  const auto drops = [characters](std::string_view from, std::size_t at) {
    const Utf8Step step = decode_utf8(from, at);
    if (characters == nullptr) return is_space(step.code_point, true);
    return characters->find(from.substr(at, step.length)) != std::string::npos;
  };
  while (left && !text.empty() && drops(text, 0)) text.remove_prefix(decode_utf8(text, 0).length);
  while (right && !text.empty()) {
    const std::size_t last = previous_code_point(text, text.size());
    if (!drops(text, last)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string replace(Runtime& runtime, std::string_view text, std::string_view part, std::string_view with,
                    std::int64_t limit) {
  std::string out;
  std::int64_t count = 0;
  std::size_t from = 0;
  while ((limit < 0 || count < limit) && !runtime.failed()) {
    const std::size_t found = part.empty() ? from : find_text(runtime, text, part, from);
    if (found == std::string_view::npos) break;
    out.append(text.substr(from, found - from));
    if (!runtime.append(out, with) || !runtime.charge(1)) return {};
    ++count;
    from = found + part.size();
    if (part.empty()) {  // Python puts the new text before every character and at the end
      if (from >= text.size()) return out;
      const std::size_t length = decode_utf8(text, from).length;
      out.append(text.substr(from, length));
      from += length;
    }
  }
  out.append(text.substr(std::min(from, text.size())));
  return out;
}

std::string to_lower(std::string_view text) { return map_code_points(text, utf8proc_tolower); }

std::string to_upper(std::string_view text) {
  // The one letter of everyday text whose upper case is two letters.
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (step.code_point == 0xDF) {
      out += "SS";
    } else {
      append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(step.code_point))));
    }
    at += step.length;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return {};
  const std::size_t first = decode_utf8(text, 0).length;
  return map_code_points(text.substr(0, first), utf8proc_totitle) + to_lower(text.substr(first));
}

}  // namespace latte::jinja
