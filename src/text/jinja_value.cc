#include "text/jinja_value.h"

#include <algorithm>

#include "text/jinja_runtime.h"
#include "text/utf8.h"

namespace latte::jinja {

int Value::depth() const {
  if (is_list()) return list().depth;
  if (is_dict()) return dict().depth;
  return is(ValueKind::kFunction) && function().self != nullptr ? 1 + function().self->depth() : 0;
}

bool Value::truthy() const {
  switch (kind()) {
    case ValueKind::kUndefined:
    case ValueKind::kNone:
      return false;
    case ValueKind::kBool:
    case ValueKind::kInt:
      return integer() != 0;
    case ValueKind::kFloat:
      return number() != 0;
    case ValueKind::kString:
      return !string().empty();
    case ValueKind::kList:
      return !list().items.empty();
    case ValueKind::kDict:
      return !dict().entries.empty();
    default:
      return true;
  }
}

std::string_view Value::type_name() const {
  switch (kind()) {
    case ValueKind::kUndefined:
      return "undefined value";
    case ValueKind::kNone:
      return "None";
    case ValueKind::kBool:
      return "bool";
    case ValueKind::kInt:
      return "int";
    case ValueKind::kFloat:
      return "float";
    case ValueKind::kString:
      return "str";
    case ValueKind::kList:
      return list().is_tuple ? "tuple" : "list";
    case ValueKind::kDict:
      return "dict";
    case ValueKind::kNamespace:
      return "namespace";
    case ValueKind::kMacro:
      return "macro";
    case ValueKind::kLoop:
      return "loop";
    case ValueKind::kFunction:
      return "function";
  }
  return "value";
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (key.is_string()) return find_text(key.string());
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return equal(runtime, entry.first, key); });
  return found == entries.end() ? nullptr : &found->second;
}

const Value* Dict::find_text(std::string_view key) const {
  const auto found = string_keys_.find(std::string(key));
  return found == string_keys_.end() ? nullptr : &entries[found->second].second;
}

void Dict::set(Runtime& runtime, Value key, Value value) {
  const Value* known = find(runtime, key);
  put(known, std::move(key), std::move(value));
}

void Dict::set_text(std::string key, Value value) {
  const Value* known = find_text(key);
  put(known, std::move(key), std::move(value));
}

void Dict::put(const Value* known, Value key, Value value) {
  depth = std::max({depth, 1 + key.depth(), 1 + value.depth()});
  if (known != nullptr) {
    *const_cast<Value*>(known) = std::move(value);
    return;
  }
  if (key.is_string()) string_keys_.emplace(key.string(), entries.size());
  entries.emplace_back(std::move(key), std::move(value));
}

Value* Namespace::find(Runtime& runtime, std::string_view name) {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& attribute) { return attribute.first == name; });
  runtime.charge(static_cast<std::size_t>(found - attributes.begin()) * kWorkPerComparison);
  return found == attributes.end() ? nullptr : &found->second;
}

bool equal(Runtime& runtime, const Value& a, const Value& b) {
  if (!runtime.charge(kWorkPerComparison)) return false;
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case ValueKind::kString:
      return a.string().size() == b.string().size() && runtime.charge(a.string().size() / 8) &&
             a.string() == b.string();
    case ValueKind::kList:
      return a.list().is_tuple == b.list().is_tuple && equal(runtime, a.list().items, b.list().items);
    case ValueKind::kDict: {
      const auto& entries = a.dict().entries;
      return entries.size() == b.dict().entries.size() &&
             std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
               const Value* other = b.dict().find(runtime, entry.first);
               return other != nullptr && equal(runtime, entry.second, *other);
             });
    }
    case ValueKind::kNamespace:
      return a.name_space() == b.name_space();
    case ValueKind::kMacro:
      return a.macro() == b.macro();
    case ValueKind::kLoop:
      return a.loop() == b.loop();
    case ValueKind::kFunction:
      return &a.function() == &b.function();
    default:
      return true;
  }
}

bool equal(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Value& left, const Value& right) { return equal(runtime, left, right); });
}

std::vector<Value> characters(std::string_view text) {
  std::vector<Value> result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text, at).length;
    result.emplace_back(std::string(text.substr(at, length)));
    at += length;
  }
  return result;
}

}  // namespace latte::jinja
