#pragma once

#include <string_view>
#include <vector>

#include "text/jinja_runtime.h"

namespace latte::jinja {

/// a op b for op one of + - * / // % **, as Python computes it. Refuses overflow of 64 bits, division by zero and types
/// that do not go together.
Value arithmetic(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

/// a op b for op one of == != < <= > >= in, not in.
bool compare(Runtime& runtime, std::string_view op, const Value& a, const Value& b);

/// True when a comes before b; refuses types without an order.
bool less(Runtime& runtime, const Value& a, const Value& b);

/// True when the container holds the item: a part of a string, an element, a key.
bool contains(Runtime& runtime, const Value& container, const Value& item);

/// What a for loop goes through: elements, keys, characters, nothing for an undefined value. Refuses other types.
std::vector<Value> iterate(Runtime& runtime, const Value& value);

/// Number of elements, keys or characters. Refuses other types.
std::int64_t length(Runtime& runtime, const Value& value);

/// base[index], else an attribute of that name; undefined when there is neither.
Value subscript(Runtime& runtime, const Value& base, const Value& index);

/// base[start:stop:step] on strings, lists and tuples; None stands for a bound left out.
Value slice(Runtime& runtime, const Value& base, const Value& start, const Value& stop, const Value& step);

/// base.name: a method, else the member of that name; undefined when there is neither.
Value attribute(Runtime& runtime, const Value& base, const std::string& name);

/// The attribute of a dotted path such as "function.name"; parts of digits are indices. `fallback`, when not null,
/// stands for a part that is not there.
Value attribute_path(Runtime& runtime, Value base, const Value& path, const Value* fallback = nullptr);

/// Byte offset of a string in another from `from` on, or npos. Linear in time, counted against the budget.
std::size_t find_text(Runtime& runtime, std::string_view text, std::string_view part, std::size_t from = 0);

/// The last one instead. Quadratic where the texts are made for it, and counted so.
std::size_t find_last_text(Runtime& runtime, std::string_view text, std::string_view part);

}  // namespace latte::jinja
