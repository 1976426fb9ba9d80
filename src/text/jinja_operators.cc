#include "text/jinja_operators.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "text/jinja_format.h"
#include "text/jinja_methods.h"
#include "text/json_text.h"
#include "text/type_words.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

Value mismatch(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  return runtime.refuse(fmt::format("'{}' between {} and {}", op, a.type_name(), b.type_name()));
}

Value undefined_used(Runtime& runtime, const Value& value) {
  const auto& name = value.undefined_name().name;
  return runtime.refuse(fmt::format("{} is undefined", name == nullptr ? "a value" : quote_for_error(*name)));
}

Value overflow(Runtime& runtime) { return runtime.refuse("an integer beyond 64 bits"); }

Value integer_power(Runtime& runtime, std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return runtime.refuse("division by zero");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow(runtime);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return overflow(runtime);
  }
  return result;
}

Value integer_arithmetic(Runtime& runtime, std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (op == "**") return integer_power(runtime, a, b);
  if (op == "+") return __builtin_add_overflow(a, b, &result) ? overflow(runtime) : Value(result);
  if (op == "-") return __builtin_sub_overflow(a, b, &result) ? overflow(runtime) : Value(result);
  if (op == "*") return __builtin_mul_overflow(a, b, &result) ? overflow(runtime) : Value(result);
  if (b == 0) return runtime.refuse("division by zero");
  if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (b == -1) return op == "%" ? Value(std::int64_t{0}) : integer_arithmetic(runtime, "-", 0, a);
  // Python rounds the quotient down and gives the remainder the divisor's sign.
  const bool correct = a % b != 0 && (a < 0) != (b < 0);
  if (op == "//") return a / b - (correct ? 1 : 0);
  return a % b + (correct ? b : 0);
}

Value float_arithmetic(Runtime& runtime, std::string_view op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) return runtime.refuse("division by zero");
  if (op == "/") return a / b;
  double remainder = std::fmod(a, b);
  if (remainder != 0 && (remainder < 0) != (b < 0)) remainder += b;
  if (op == "%") return remainder;
  return std::floor((a - remainder) / b + 0.5);
}

Value repeat(Runtime& runtime, const Value& sequence, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  const std::size_t size =
      sequence.is_string() ? sequence.string().size() : sequence.list().items.size() * sizeof(Value);
  if (size != 0 && times > kMaxOutputBytes / size) return runtime.refuse("a repetition that gets too long");
  if (sequence.is_string()) {
    std::string text;
    text.reserve(size * times);
    for (std::size_t i = 0; size != 0 && i < times; ++i) text += sequence.string();
    return runtime.make_string(std::move(text));
  }
  std::vector<Value> items;
  for (std::size_t i = 0; size != 0 && i < times; ++i) {
    items.insert(items.end(), sequence.list().items.begin(), sequence.list().items.end());
  }
  return runtime.make_list(std::move(items), sequence.list().is_tuple);
}

// Bounds of a slice, clipped as Python clips them.
struct SliceBounds {
  std::int64_t start, stop, step;
};

SliceBounds clip(const Value& start, const Value& stop, std::int64_t step, std::int64_t size) {
  const auto place = [size, step](const Value& bound, std::int64_t fallback) {
    if (!bound.is_integral()) return fallback;
    std::int64_t index = bound.integer();
    if (index < 0) index = std::max<std::int64_t>(index + size, step < 0 ? -1 : 0);
    return std::min(index, step < 0 ? size - 1 : size);
  };
  return {place(start, step < 0 ? size - 1 : 0), place(stop, step < 0 ? -1 : size), step};
}

std::vector<std::size_t> slice_indices(const SliceBounds& bounds) {
  std::vector<std::size_t> indices;
  std::int64_t at = bounds.start;
  while (bounds.step > 0 ? at < bounds.stop : at > bounds.stop) {
    indices.push_back(static_cast<std::size_t>(at));
    if (__builtin_add_overflow(at, bounds.step, &at)) break;
  }
  return indices;
}

Value loop_attribute(Loop& loop, const std::string& name) {
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto size = static_cast<std::int64_t>(loop.items->items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == size;
  if (name == "length") return size;
  if (name == "revindex") return size - index;
  if (name == "revindex0") return size - index - 1;
  if (name == "depth") return static_cast<std::int64_t>(loop.depth + 1);
  if (name == "depth0") return static_cast<std::int64_t>(loop.depth);
  if (name == "previtem")
    return index > 0 ? loop.items->items[loop.index - 1] : Value::undefined("there is no previous item");
  if (name == "nextitem") {
    return index + 1 < size ? loop.items->items[loop.index + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") return Function{name, std::make_shared<const Value>(&loop)};
  return Value::undefined(name);
}

Value member(Runtime& runtime, const Value& base, const Value& key) {
  if (base.is_dict()) {
    if (const Value* found = base.dict().find(runtime, key)) return *found;
  } else if (base.is_list() && key.is_integral()) {
    const auto& items = base.list().items;
    std::int64_t index = key.integer();
    if (index < 0) index += static_cast<std::int64_t>(items.size());
    if (index >= 0 && index < static_cast<std::int64_t>(items.size())) return items[static_cast<std::size_t>(index)];
  } else if (base.is_string() && key.is_integral()) {
    const std::int64_t size = length(runtime, base);
    std::int64_t index = key.integer();
    if (index < 0) index += size;
    if (index >= 0 && index < size) return slice(runtime, base, index, index + 1, nullptr);
  }
  return Value::undefined(key.is_string() ? key.string() : "item");
}

}  // namespace

Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (runtime.failed()) return {};
  if (a.is_undefined()) return undefined_used(runtime, a);
  if (op == "%" && a.is_string()) {
    const bool several = b.is_list() && b.list().is_tuple;
    return format_percent(runtime, a.string(), several ? b.list().items : std::vector<Value>{b});
  }
  if (b.is_undefined()) return undefined_used(runtime, b);
  if (a.is_integral() && b.is_integral()) return integer_arithmetic(runtime, op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return float_arithmetic(runtime, op, a.number(), b.number());
  if (op == "+" && a.is_string() && b.is_string()) return runtime.make_string(a.string() + b.string());
  if (op == "+" && a.is_list() && b.is_list() && a.list().is_tuple == b.list().is_tuple) {
    std::vector<Value> items = a.list().items;
    items.insert(items.end(), b.list().items.begin(), b.list().items.end());
    return runtime.make_list(std::move(items), a.list().is_tuple);
  }
  if (op == "*" && (a.is_string() || a.is_list()) && b.is_integral()) return repeat(runtime, a, b.integer());
  if (op == "*" && (b.is_string() || b.is_list()) && a.is_integral()) return repeat(runtime, b, a.integer());
  return mismatch(runtime, op, a, b);
}

bool less(Runtime& runtime, const Value& a, const Value& b) {
  if (runtime.failed()) return false;
  if (a.is_undefined() || b.is_undefined()) {
    undefined_used(runtime, a.is_undefined() ? a : b);
    return false;
  }
  if (a.is_integral() && b.is_integral()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.number() < b.number();
  if (a.is_string() && b.is_string()) return a.string() < b.string();  // byte order is code point order
  if (a.is_list() && b.is_list() && a.list().is_tuple == b.list().is_tuple) {
    const auto& left = a.list().items;
    const auto& right = b.list().items;
    for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      if (!equal(runtime, left[i], right[i])) return less(runtime, left[i], right[i]);
    }
    return left.size() < right.size();
  }
  mismatch(runtime, "<", a, b);
  return false;
}

bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b) {
  if (!runtime.charge(8)) return false;
  if (op == "==") return equal(runtime, a, b);
  if (op == "!=") return !equal(runtime, a, b);
  if (op == "in") return contains(runtime, b, a);
  if (op == "not in") return !contains(runtime, b, a);
  if (op == "<") return less(runtime, a, b);
  if (op == ">") return less(runtime, b, a);
  if (a.is_number() && b.is_number() && (std::isnan(a.number()) || std::isnan(b.number()))) return false;
  return op == "<=" ? !less(runtime, b, a) : !less(runtime, a, b);
}

std::size_t find_text(Runtime& runtime, std::string_view text, std::string_view part, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  // memmem is linear whatever the texts; std::string's find is not.
  const char* start = text.data() + from;
  const void* hit = memmem(start, text.size() - from, part.data(), part.size());
  const auto passed =
      static_cast<std::size_t>((hit == nullptr ? text.data() + text.size() : static_cast<const char*>(hit)) - start);
  runtime.charge(1 + passed / 8);
  return hit == nullptr ? std::string_view::npos : from + passed;
}

std::size_t find_last_text(Runtime& runtime, std::string_view text, std::string_view part) {
  // A search from the right may compare the whole part at every place.
  return runtime.charge(1 + text.size() / 8 * (1 + part.size() / 64)) ? text.rfind(part) : std::string_view::npos;
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (runtime.failed() || container.is_undefined()) return false;
  if (container.is_string()) {
    if (item.is_string()) return find_text(runtime, container.string(), item.string()) != std::string::npos;
    runtime.refuse(fmt::format("'in' between {} and str", item.type_name()));
    return false;
  }
  if (container.is_dict()) return container.dict().find(runtime, item) != nullptr;
  if (container.is_list()) {
    const auto& items = container.list().items;
    runtime.charge(items.size());
    return std::any_of(items.begin(), items.end(), [&](const Value& element) { return equal(runtime, element, item); });
  }
  runtime.refuse(fmt::format("'in' {}, expected a str, list or dict", with_article(container.type_name())));
  return false;
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  if (runtime.failed() || value.is_undefined()) return items;
  if (value.is_list()) {
    items = value.list().items;
  } else if (value.is_dict()) {
    for (const auto& entry : value.dict().entries) items.push_back(entry.first);
  } else if (value.is_string()) {
    if (runtime.charge(value.string().size() * 64)) items = characters(value.string());
  } else if (value.is(ValueKind::kLoop)) {
    items = value.loop()->items->items;
  } else {
    runtime.refuse(fmt::format("{} cannot be iterated over", with_article(value.type_name())));
  }
  runtime.charge(items.size() * sizeof(Value));
  return items;
}

std::int64_t length(Runtime& runtime, const Value& value) {
  if (runtime.failed() || value.is_undefined()) return 0;
  if (value.is_list()) return static_cast<std::int64_t>(value.list().items.size());
  if (value.is_dict()) return static_cast<std::int64_t>(value.dict().entries.size());
  if (value.is_string()) {
    runtime.charge(value.string().size() / 8);
    return static_cast<std::int64_t>(count_code_points(value.string()));
  }
  if (value.is(ValueKind::kLoop)) return static_cast<std::int64_t>(value.loop()->items->items.size());
  runtime.refuse(fmt::format("{} has no length", with_article(value.type_name())));
  return 0;
}

Value subscript(Runtime& runtime, const Value& base, const Value& index) {
  if (runtime.failed()) return {};
  if (base.is_undefined()) return undefined_used(runtime, base);
  Value found = member(runtime, base, index);
  if (!found.is_undefined() || !index.is_string() || (base.is_dict() && base.dict().find(runtime, index) != nullptr))
    return found;
  return attribute(runtime, base, index.string());
}

Value slice(Runtime& runtime, const Value& base, const Value& start, const Value& stop, const Value& step) {
  if (runtime.failed()) return {};
  if (base.is_undefined()) return undefined_used(runtime, base);
  if (!base.is_string() && !base.is_list()) {
    return runtime.refuse(fmt::format("{} cannot be sliced", with_article(base.type_name())));
  }
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->is_none() && !bound->is_integral()) {
      return runtime.refuse(fmt::format("a slice bound is {}, expected an int", with_article(bound->type_name())));
    }
  }
  const std::int64_t stride = step.is_none() ? 1 : step.integer();
  if (stride == 0) return runtime.refuse("a slice step of 0");
  const SliceBounds bounds = clip(start, stop, stride, length(runtime, base));
  if (base.is_string() && stride == 1) {
    if (bounds.start >= bounds.stop) return runtime.make_string({});
    const std::string& text = base.string();
    runtime.charge(text.size() / 8);
    const std::size_t from = code_point_offset(text, static_cast<std::size_t>(bounds.start));
    const std::string_view tail = std::string_view(text).substr(from);
    return runtime.make_string(
        std::string(tail.substr(0, code_point_offset(tail, static_cast<std::size_t>(bounds.stop - bounds.start)))));
  }
  const std::vector<Value> items = iterate(runtime, base);
  std::vector<Value> chosen;
  if (runtime.failed()) return {};
  for (const std::size_t index : slice_indices(bounds)) chosen.push_back(items[index]);
  if (base.is_list()) return runtime.make_list(std::move(chosen), base.list().is_tuple);
  std::string text;
  for (const Value& character : chosen) text += character.string();
  return runtime.make_string(std::move(text));
}

Value attribute(Runtime& runtime, const Value& base, const std::string& name) {
  if (runtime.failed()) return {};
  if (base.is_undefined()) return undefined_used(runtime, base);
  if (base.is(ValueKind::kNamespace)) {
    const Value* found = base.name_space()->find(runtime, name);
    return found == nullptr ? Value::undefined(name) : *found;
  }
  if (base.is(ValueKind::kLoop)) return loop_attribute(*base.loop(), name);
  if (base.is(ValueKind::kMacro) && name == "name") return base.macro()->definition->text;
  if (has_method(base, name)) return Function{name, std::make_shared<const Value>(base)};
  return member(runtime, base, name);
}

Value attribute_path(Runtime& runtime, Value base, const Value& path, const Value* fallback) {
  if (path.is_integral()) {
    base = subscript(runtime, base, path);
    return base.is_undefined() && fallback != nullptr ? *fallback : base;
  }
  if (!path.is_string())
    return runtime.refuse(fmt::format("an attribute is {}, expected a str", with_article(path.type_name())));
  std::string_view rest = path.string();
  while (!runtime.failed()) {
    const std::size_t dot = rest.find('.');
    const std::string part(rest.substr(0, dot));
    std::int64_t index = 0;
    const auto parsed = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index =
        !part.empty() && part[0] != '-' && parsed.ec == std::errc() && parsed.ptr == part.data() + part.size();
    base = subscript(runtime, base, is_index ? Value(index) : Value(part));
    if (base.is_undefined() && fallback != nullptr) base = *fallback;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  return base;
}

}  // namespace latte::jinja
