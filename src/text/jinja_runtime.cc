#include "text/jinja_runtime.h"

#include <algorithm>

#include "base/fail.h"

namespace latte::jinja {

void Scope::set(Runtime& runtime, std::string_view name, Value value) {
  runtime.charge(names.size() * kWorkPerComparison);
  for (auto& [known, slot] : names) {
    if (known == name) {
      slot = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

const Value* Scope::find(Runtime& runtime, std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    runtime.charge((1 + scope->names.size()) * kWorkPerComparison);
    for (const auto& [known, value] : scope->names) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

const Value* Arguments::find(std::size_t index, std::string_view name) const {
  if (index < positional.size()) return &positional[index];
  const auto found = std::find_if(named.begin(), named.end(), [&](const auto& entry) { return entry.first == name; });
  return found == named.end() ? nullptr : &found->second;
}

Value Runtime::refuse(std::string_view message) {
  if (!failed()) error_ = fail(ErrorKind::kInvalidInput, "line {}: {}", line_, message);
  return {};
}

bool Runtime::charge(std::size_t work) {
  if (failed()) return false;
  if (work <= kMaxWork - work_) {
    work_ += work;
    return true;
  }
  refuse("the template takes more work than any conversation needs; it may run in circles");
  return false;
}

bool Runtime::append(std::string& text, std::string_view part) {
  if (!charge(part.size())) return false;
  if (part.size() > kMaxOutputBytes - std::min(text.size(), kMaxOutputBytes)) {
    refuse(fmt::format("a text of more than {} bytes", kMaxOutputBytes));
    return false;
  }
  text += part;
  return true;
}

Value Runtime::make_string(std::string text) {
  if (!charge(text.size())) return {};
  if (text.size() > kMaxOutputBytes) {
    return refuse(fmt::format("a string of {} bytes, expected at most {}", text.size(), kMaxOutputBytes));
  }
  return Value(std::move(text));
}

Value Runtime::make_list(std::vector<Value> items, bool is_tuple) {
  if (!charge(items.size() * kWorkPerElement)) return {};
  auto list = std::make_shared<List>();
  list->is_tuple = is_tuple;
  for (const Value& item : items) list->depth = std::max(list->depth, 1 + item.depth());
  list->items = std::move(items);
  if (list->depth > kMaxValueDepth) return refuse("lists nested too deep");
  return std::shared_ptr<const List>(std::move(list));
}

Value Runtime::make_dict(Dict dict) {
  if (!charge(dict.entries.size() * kWorkPerElement)) return {};
  if (dict.depth > kMaxValueDepth) return refuse("dicts nested too deep");
  return std::shared_ptr<const Dict>(std::make_shared<Dict>(std::move(dict)));
}

bool Runtime::room_for_object() {
  if (namespaces_.size() + macros_.size() + loops_.size() < kMaxObjects) return true;
  refuse("the template makes too many namespaces, macros and loops; it may run in circles");
  return false;
}

Namespace* Runtime::make_namespace() { return room_for_object() ? &namespaces_.emplace_back() : nullptr; }

const Macro* Runtime::make_macro(Macro macro) {
  return room_for_object() ? &macros_.emplace_back(std::move(macro)) : nullptr;
}

Loop* Runtime::make_loop(Loop loop) { return room_for_object() ? &loops_.emplace_back(std::move(loop)) : nullptr; }

}  // namespace latte::jinja
