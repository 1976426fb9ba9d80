#include "text/jinja_filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "base/fail.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

constexpr std::int64_t kLongestLeeway = 1 << 30;

struct FilterCall {
  Runtime& runtime;
  const Value& value;
  const Arguments& arguments;

  bool flag(std::size_t index, std::string_view name, bool fallback = false) const {
    const Value* argument = arguments.find(index, name);
    return argument == nullptr ? fallback : argument->truthy();
  }

  std::int64_t integer(std::size_t index, std::string_view name, std::int64_t fallback) const {
    const Value* argument = arguments.find(index, name);
    if (argument == nullptr || argument->is_none()) return fallback;
    if (argument->is_integral()) return argument->integer();
    runtime.refuse(fmt::format("argument {} is {}, expected an int", name, with_article(argument->type_name())));
    return fallback;
  }

  std::string text(std::size_t index, std::string_view name, std::string fallback) const {
    const Value* argument = arguments.find(index, name);
    return argument == nullptr || argument->is_none() ? fallback : to_text(runtime, *argument);
  }
};

using Filter = std::function<Value(const FilterCall&)>;

Filter text_filter(std::string (*map)(std::string_view)) {
  return [map](const FilterCall& call) { return call.runtime.make_string(map(to_text(call.runtime, call.value))); };
}

Value default_filter(const FilterCall& call) {
  const bool missing = call.value.is_undefined() || (call.flag(1, "boolean") && !call.value.truthy());
  if (!missing) return call.value;
  const Value* fallback = call.arguments.find(0, "default_value");
  return fallback == nullptr ? Value("") : *fallback;
}

Value tojson(const FilterCall& call) {
  JsonStyle style;
  style.ensure_ascii = call.flag(0, "ensure_ascii");
  style.sort_keys = call.flag(3, "sort_keys");
  if (const Value* indent = call.arguments.find(1, "indent"); indent != nullptr && !indent->is_none()) {
    style.indented = true;
    style.item_separator = ",";
    if (indent->is_string()) {
      style.indent = indent->string();
    } else {
      const std::int64_t width = call.integer(1, "indent", 0);
      if (width > 1000) return call.runtime.refuse("an indent of more than 1000");
      style.indent.assign(static_cast<std::size_t>(std::max<std::int64_t>(width, 0)), ' ');
    }
  }
  if (const Value* separators = call.arguments.find(2, "separators"); separators != nullptr && !separators->is_none()) {
    if (!separators->is_list() || separators->list().items.size() != 2 || !separators->list().items[0].is_string() ||
        !separators->list().items[1].is_string()) {
      return call.runtime.refuse("tojson: separators, expected two strings");
    }
    style.item_separator = separators->list().items[0].string();
    style.key_separator = separators->list().items[1].string();
  }
  return call.runtime.make_string(to_json(call.runtime, call.value, style));
}

Value trim(const FilterCall& call) {
  const std::string text = to_text(call.runtime, call.value);
  const Value* characters = call.arguments.find(0, "chars");
  const bool spaces = characters == nullptr || !characters->is_string();
  return call.runtime.make_string(std::string(strip(text, spaces ? nullptr : &characters->string(), true, true)));
}

Value replace_filter(const FilterCall& call) {
  if (call.arguments.find(1, "new") == nullptr) return call.runtime.refuse("replace: expected an old and a new text");
  return call.runtime.make_string(replace(call.runtime, to_text(call.runtime, call.value), call.text(0, "old", ""),
                                          call.text(1, "new", ""), call.integer(2, "count", -1)));
}

Value indent(const FilterCall& call) {
  const Value* width = call.arguments.find(0, "width");
  const std::int64_t spaces = width != nullptr && width->is_string() ? 0 : call.integer(0, "width", 4);
  if (spaces > 1000) return call.runtime.refuse("an indent of more than 1000");
  const std::string prefix = width != nullptr && width->is_string()
                                 ? width->string()
                                 : std::string(static_cast<std::size_t>(std::max<std::int64_t>(spaces, 0)), ' ');
  const Value text = call.runtime.make_string(to_text(call.runtime, call.value) + "\n");
  const std::vector<Value> lines = iterate(call.runtime, call_method(call.runtime, text, "splitlines", {}));
  std::string out = call.flag(1, "first") ? prefix : std::string();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string& line = lines[i].string();
    const bool indented = i > 0 && (call.flag(2, "blank") || !line.empty());
    if (i > 0 && !call.runtime.append(out, "\n")) return {};
    if (indented && !call.runtime.append(out, prefix)) return {};
    if (!call.runtime.append(out, line)) return {};
  }
  return call.runtime.make_string(std::move(out));
}

// The elements, each seen through attribute=... when that is given.
std::vector<Value> attributes(const FilterCall& call, std::size_t index) {
  std::vector<Value> items = iterate(call.runtime, call.value);
  const Value* path = call.arguments.find(index, "attribute");
  if (path == nullptr || path->is_none()) return items;
  for (Value& item : items) item = attribute_path(call.runtime, item, *path);
  return items;
}

Value join(const FilterCall& call) {
  const std::string separator = call.text(0, "d", "");
  std::string out;
  bool first = true;
  for (const Value& item : attributes(call, 1)) {
    if (!std::exchange(first, false) && !call.runtime.append(out, separator)) return {};
    if (!call.runtime.append(out, to_text(call.runtime, item))) return {};
  }
  return call.runtime.make_string(std::move(out));
}

Value first(const FilterCall& call) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  return items.empty() ? Value::undefined("the first of nothing") : items.front();
}

Value last(const FilterCall& call) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  return items.empty() ? Value::undefined("the last of nothing") : items.back();
}

Value reverse(const FilterCall& call) {
  std::vector<Value> items = iterate(call.runtime, call.value);
  std::reverse(items.begin(), items.end());
  if (!call.value.is_string()) return call.runtime.make_list(std::move(items));
  std::string text;
  for (const Value& character : items) text += character.string();
  return call.runtime.make_string(std::move(text));
}

// Letters compare without case unless case_sensitive says otherwise.
Value sort_key(const Value& value, bool case_sensitive) {
  return value.is_string() && !case_sensitive ? Value(to_lower(value.string())) : value;
}

// A merge sort, for an order that may turn out not to be one (mixed types end in an error, NaN in any order).
void sort_by_key(Runtime& runtime, std::vector<std::pair<Value, Value>>& keyed) {
  std::vector<std::pair<Value, Value>> merged(keyed.size());
  for (std::size_t width = 1; width < keyed.size(); width *= 2) {
    for (std::size_t begin = 0; begin < keyed.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, keyed.size());
      const std::size_t end = std::min(begin + 2 * width, keyed.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t to = begin; to < end; ++to) {
        runtime.charge(8);
        const bool take_right = right < end && (left >= middle || less(runtime, keyed[right].first, keyed[left].first));
        merged[to] = take_right ? keyed[right++] : keyed[left++];
      }
    }
    keyed.swap(merged);
    if (runtime.failed()) return;
  }
}

Value sorted(Runtime& runtime, std::vector<std::pair<Value, Value>> keyed, bool descending) {
  // Equal elements keep their order both ways, so a reversed sort reverses before and after.
  if (descending) std::reverse(keyed.begin(), keyed.end());
  sort_by_key(runtime, keyed);
  if (descending) std::reverse(keyed.begin(), keyed.end());
  std::vector<Value> items;
  for (auto& entry : keyed) items.push_back(std::move(entry.second));
  return runtime.make_list(std::move(items));
}

Value sort(const FilterCall& call) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  const std::vector<Value> keys = attributes(call, 2);
  std::vector<std::pair<Value, Value>> keyed;
  for (std::size_t i = 0; i < items.size() && !call.runtime.failed(); ++i) {
    keyed.emplace_back(sort_key(keys[i], call.flag(1, "case_sensitive")), items[i]);
  }
  return sorted(call.runtime, std::move(keyed), call.flag(0, "reverse"));
}

Value dictsort(const FilterCall& call) {
  if (!call.value.is_dict())
    return call.runtime.refuse(fmt::format("dictsort of {}", with_article(call.value.type_name())));
  const bool by_value = call.text(1, "by", "key") == "value";
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : call.value.dict().entries) {
    keyed.emplace_back(sort_key(by_value ? value : key, call.flag(0, "case_sensitive")),
                       call.runtime.make_list({key, value}, true));
  }
  return sorted(call.runtime, std::move(keyed), call.flag(2, "reverse"));
}

Value unique(const FilterCall& call) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  const std::vector<Value> keys = attributes(call, 1);
  Dict seen;
  std::vector<Value> kept;
  for (std::size_t i = 0; i < items.size() && !call.runtime.failed(); ++i) {
    const Value key = sort_key(keys[i], call.flag(0, "case_sensitive"));
    if (seen.find(call.runtime, key) != nullptr) continue;
    seen.set(call.runtime, key, nullptr);
    kept.push_back(items[i]);
  }
  return call.runtime.make_list(std::move(kept));
}

Value extreme(const FilterCall& call, bool largest) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  const std::vector<Value> keys = attributes(call, 1);
  if (items.empty()) return Value::undefined("the extreme of nothing");
  std::size_t best = 0;
  const bool case_sensitive = call.flag(0, "case_sensitive");
  for (std::size_t i = 1; i < items.size() && !call.runtime.failed(); ++i) {
    const Value key = sort_key(keys[i], case_sensitive);
    const Value best_key = sort_key(keys[best], case_sensitive);
    if (largest ? less(call.runtime, best_key, key) : less(call.runtime, key, best_key)) best = i;
  }
  return items[best];
}

Value sum(const FilterCall& call) {
  const Value* start = call.arguments.find(1, "start");
  Value total = start == nullptr ? Value(std::int64_t{0}) : *start;
  for (const Value& item : attributes(call, 0)) total = arithmetic(call.runtime, "+", total, item);
  return total;
}

Arguments rest_of(const Arguments& arguments, std::size_t count) {
  Arguments rest;
  rest.named = arguments.named;
  for (std::size_t i = count; i < arguments.positional.size(); ++i) rest.positional.push_back(arguments.positional[i]);
  return rest;
}

Value map_filter(const FilterCall& call) {
  std::vector<Value> items = iterate(call.runtime, call.value);
  if (call.arguments.positional.empty()) {
    const Value* path = call.arguments.find(0, "attribute");
    if (path == nullptr) return call.runtime.refuse("map without a filter or an attribute");
    const Value* fallback = call.arguments.find(1, "default");
    for (Value& item : items) item = attribute_path(call.runtime, item, *path, fallback);
    return call.runtime.make_list(std::move(items));
  }
  const std::string name = to_text(call.runtime, call.arguments.positional[0]);
  const Arguments rest = rest_of(call.arguments, 1);
  for (Value& item : items) item = apply_filter(call.runtime, name, item, rest);
  return call.runtime.make_list(std::move(items));
}

// select, reject, selectattr and rejectattr.
Value select(const FilterCall& call, bool keep, bool by_attribute) {
  const std::size_t skipped = by_attribute ? 1 : 0;
  const auto& given = call.arguments.positional;
  if (given.size() < skipped) return call.runtime.refuse("selectattr without an attribute");
  const bool has_name = given.size() > skipped;
  const std::string name = has_name ? to_text(call.runtime, given[skipped]) : "";
  const Arguments rest = rest_of(call.arguments, skipped + 1);
  std::vector<Value> kept;
  for (const Value& item : iterate(call.runtime, call.value)) {
    const Value subject = by_attribute ? attribute_path(call.runtime, item, given[0]) : item;
    if (call.runtime.failed()) return {};
    const bool chosen = has_name ? apply_test(call.runtime, name, subject, rest) : subject.truthy();
    if (chosen == keep) kept.push_back(item);
  }
  return call.runtime.make_list(std::move(kept));
}

Value to_list(const FilterCall& call) { return call.runtime.make_list(iterate(call.runtime, call.value)); }

Value items_filter(const FilterCall& call) {
  if (call.value.is_undefined()) return call.runtime.make_list({});
  if (!call.value.is_dict())
    return call.runtime.refuse(fmt::format("items of {}, expected a dict", with_article(call.value.type_name())));
  return call_method(call.runtime, call.value, "items", {});
}

Value to_int(const FilterCall& call) {
  const Value* given = call.arguments.find(0, "default");
  const Value fallback = given == nullptr ? Value(std::int64_t{0}) : *given;
  if (call.value.is_integral()) return call.value.integer();
  if (call.value.is(ValueKind::kFloat)) {
    const double number = call.value.number();
    if (std::isnan(number) || std::isinf(number)) return fallback;
    if (std::abs(number) < 9e18) return Value(static_cast<std::int64_t>(number));
    return call.runtime.refuse("a number that does not fit 64 bits");
  }
  if (!call.value.is_string()) return fallback;
  const std::string_view text = strip(call.value.string(), nullptr, true, true);
  std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const std::int64_t base = call.integer(1, "base", 10);
  if (base < 2 || base > 36) return fallback;
  const std::string_view mark = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  if (!mark.empty() && to_lower(digits.substr(0, 2)) == mark) digits.remove_prefix(2);
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, static_cast<int>(base));
  if (!digits.empty() && parsed.ec == std::errc() && parsed.ptr == end) return value;
  double number = 0;
  const auto as_float = std::from_chars(digits.data(), end, number);
  const bool is_float = !digits.empty() && as_float.ec == std::errc() && as_float.ptr == end && std::abs(number) < 9e18;
  return is_float ? Value(static_cast<std::int64_t>(number)) : fallback;
}

Value to_float(const FilterCall& call) {
  if (call.value.is_number()) return call.value.number();
  const Value* given = call.arguments.find(0, "default");
  const Value fallback = given == nullptr ? Value(0.0) : *given;
  if (!call.value.is_string()) return fallback;
  const std::string_view text = strip(call.value.string(), nullptr, true, true);
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  double number = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return !digits.empty() && parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() ? Value(number)
                                                                                                    : fallback;
}

Value round_filter(const FilterCall& call) {
  if (!call.value.is_number())
    return call.runtime.refuse(fmt::format("round of {}", with_article(call.value.type_name())));
  const std::int64_t precision = call.integer(0, "precision", 0);
  const std::string method = call.text(1, "method", "common");
  if (precision < -300 || precision > 300) return call.runtime.refuse("a precision beyond 300");
  const double number = call.value.number();
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (method == "ceil") return std::ceil(number * scale) / scale;
  if (method == "floor") return std::floor(number * scale) / scale;
  if (method != "common") return call.runtime.refuse("round: method, expected common, ceil or floor");
  if (call.value.is_integral() && precision >= 0) return call.value.integer();
  // Rounding the decimal digits is what Python does, and differs from scaling in the last place.
  if (precision >= 0) {
    const std::string digits = fmt::format("{:.{}f}", number, precision);
    double rounded = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
    return rounded;
  }
  return std::nearbyint(number * scale) / scale;
}

Value absolute(const FilterCall& call) {
  if (!call.value.is_number())
    return call.runtime.refuse(fmt::format("abs of {}", with_article(call.value.type_name())));
  if (call.value.is(ValueKind::kFloat)) return std::abs(call.value.number());
  return call.value.integer() < 0 ? arithmetic(call.runtime, "-", std::int64_t{0}, call.value)
                                  : Value(call.value.integer());
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

Value word_count(const FilterCall& call) {
  const std::string text = to_text(call.runtime, call.value);
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const bool word = is_word(step.code_point);
    words += word && !in_word ? 1 : 0;
    in_word = word;
    at += step.length;
  }
  return words;
}

// Jinja's own title case: what follows white space, a hyphen or a bracket begins a word.
std::string title_words(std::string_view text) {
  std::string out;
  std::string word;
  const auto flush = [&] {
    out += capitalize(word);
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const char32_t c = step.code_point;
    const bool separates = c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c, true);
    if (separates) flush();
    word.append(text.substr(at, step.length));
    if (separates) flush();
    at += step.length;
  }
  flush();
  return out;
}

Value truncate(const FilterCall& call) {
  const std::string text = to_text(call.runtime, call.value);
  const std::string end = call.text(2, "end", "...");
  const std::int64_t length = call.integer(0, "length", 255);
  const std::int64_t leeway = call.integer(3, "leeway", 5);
  const auto end_length = static_cast<std::int64_t>(count_code_points(end));
  if (length < end_length || leeway < 0 || leeway > kLongestLeeway) {
    return call.runtime.refuse(
        fmt::format("truncate to {} characters with {} to spare, expected room for {}", length, leeway, end_length));
  }
  if (static_cast<std::int64_t>(count_code_points(text)) - leeway <= length) return call.runtime.make_string(text);
  std::string kept = text.substr(0, code_point_offset(text, static_cast<std::size_t>(length - end_length)));
  if (const std::size_t space = kept.rfind(' '); !call.flag(1, "killwords") && space != std::string::npos) {
    kept.resize(space);
  }
  return call.runtime.make_string(kept + end);
}

Value center(const FilterCall& call) {
  const Value text = call.runtime.make_string(to_text(call.runtime, call.value));
  return call_method(call.runtime, text, "center", {.positional = {call.integer(0, "width", 80)}, .named = {}});
}

Value format_filter(const FilterCall& call) {
  if (!call.arguments.named.empty()) return call.runtime.refuse("format takes no named arguments here");
  return format_percent(call.runtime, to_text(call.runtime, call.value), call.arguments.positional);
}

// Rows of `count` items, the last filled up where there is something to fill with.
Value batch(const FilterCall& call) {
  const std::vector<Value> items = iterate(call.runtime, call.value);
  const std::int64_t count = call.integer(0, "linecount", 0);
  if (count < 1) return call.runtime.refuse(fmt::format("batch of {} items, expected at least 1", count));
  const Value* fill = call.arguments.find(1, "fill_with");
  std::vector<Value> rows;
  for (std::size_t begin = 0; begin < items.size() && !call.runtime.failed();) {
    const std::size_t end = begin + std::min<std::size_t>(items.size() - begin, static_cast<std::size_t>(count));
    std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(begin),
                           items.begin() + static_cast<std::ptrdiff_t>(end));
    while (fill != nullptr && !fill->is_none() && row.size() < static_cast<std::size_t>(count)) {
      if (!call.runtime.charge(1)) return {};
      row.push_back(*fill);
    }
    rows.push_back(call.runtime.make_list(std::move(row)));
    begin = end;
  }
  return call.runtime.make_list(std::move(rows));
}

Value attribute_filter(const FilterCall& call) { return attribute(call.runtime, call.value, call.text(0, "name", "")); }

const std::unordered_map<std::string_view, Filter>& filters() {
  static const Filter kLength = [](const FilterCall& call) { return Value(length(call.runtime, call.value)); };
  static const Filter kText = [](const FilterCall& call) {
    return call.runtime.make_string(to_text(call.runtime, call.value));
  };
  static const std::unordered_map<std::string_view, Filter> kTable = {
      {"abs", absolute},
      {"attr", attribute_filter},
      {"batch", batch},
      {"capitalize", text_filter(capitalize)},
      {"center", center},
      {"count", kLength},
      {"d", default_filter},
      {"default", default_filter},
      {"dictsort", dictsort},
      {"e", text_filter(escape_html)},
      {"escape", text_filter(escape_html)},
      {"first", first},
      {"float", to_float},
      {"format", format_filter},
      {"indent", indent},
      {"int", to_int},
      {"items", items_filter},
      {"join", join},
      {"last", last},
      {"length", kLength},
      {"list", to_list},
      {"lower", text_filter(to_lower)},
      {"map", map_filter},
      {"max", [](const FilterCall& call) { return extreme(call, true); }},
      {"min", [](const FilterCall& call) { return extreme(call, false); }},
      {"reject", [](const FilterCall& call) { return select(call, false, false); }},
      {"rejectattr", [](const FilterCall& call) { return select(call, false, true); }},
      {"replace", replace_filter},
      {"reverse", reverse},
      {"round", round_filter},
      {"safe", kText},
      {"select", [](const FilterCall& call) { return select(call, true, false); }},
      {"selectattr", [](const FilterCall& call) { return select(call, true, true); }},
      {"sort", sort},
      {"string", kText},
      {"sum", sum},
      {"title", text_filter(title_words)},
      {"tojson", tojson},
      {"trim", trim},
      {"truncate", truncate},
      {"unique", unique},
      {"upper", text_filter(to_upper)},
      {"wordcount", word_count},
  };
  return kTable;
}

}  // namespace

bool has_filter(std::string_view name) { return filters().count(name) > 0; }

Value apply_filter(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments) {
  if (!runtime.charge(8)) return {};
  const auto filter = filters().find(name);
  if (filter == filters().end()) return runtime.refuse(fmt::format("no filter named '{}'", name));
  return filter->second({runtime, subject, arguments});
}

}  // namespace latte::jinja
