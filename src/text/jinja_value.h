#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace latte::jinja {

class Value;
struct List;
struct Dict;
struct Namespace;
struct Macro;
struct Loop;
class Runtime;

/// A name or member that is not there; prints as nothing, counts as false, cannot be looked into.
struct Undefined {
  std::shared_ptr<const std::string> name;  // what was looked for, for messages; may be null
};

/// A function of the language itself, or a method bound to a value.
struct Function {
  std::string name;
  std::shared_ptr<const Value> self;  // null for a global function
};

enum class ValueKind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kDict,
  kNamespace,
  kMacro,
  kLoop,
  kFunction
};

/// A value of a template: immutable, cheap to copy, like the Python value that Jinja would have. Namespaces, macros and
/// loops belong to the run of the template (Runtime) and are only pointed to.
class Value {
 public:
  Value() = default;                           // undefined
  Value(std::nullptr_t) : data_(None{}) {}     // NOLINT: implicit by design, as are all that follow
  Value(bool value) : data_(value) {}          // NOLINT
  Value(std::int64_t value) : data_(value) {}  // NOLINT
  Value(double value) : data_(value) {}        // NOLINT
  Value(std::string value) : data_(std::make_shared<const std::string>(std::move(value))) {}  // NOLINT
  Value(const char* value) : Value(std::string(value)) {}                                     // NOLINT
  Value(std::shared_ptr<const List> value) : data_(std::move(value)) {}                       // NOLINT
  Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}                       // NOLINT
  Value(Namespace* value) : data_(value) {}                                                   // NOLINT
  Value(const Macro* value) : data_(value) {}                                                 // NOLINT
  Value(Loop* value) : data_(value) {}                                                        // NOLINT
  Value(Function value) : data_(std::make_shared<const Function>(std::move(value))) {}        // NOLINT

  static Value undefined(std::string name) {
    Value value;
    value.data_ = Undefined{std::make_shared<const std::string>(std::move(name))};
    return value;
  }

  ValueKind kind() const { return static_cast<ValueKind>(data_.index()); }
  bool is(ValueKind kind) const { return data_.index() == static_cast<std::size_t>(kind); }
  bool is_undefined() const { return is(ValueKind::kUndefined); }
  bool is_none() const { return is(ValueKind::kNone); }
  bool is_string() const { return is(ValueKind::kString); }
  bool is_list() const { return is(ValueKind::kList); }
  bool is_dict() const { return is(ValueKind::kDict); }
  /// An integer or a boolean, which counts as 0 or 1.
  bool is_integral() const { return is(ValueKind::kInt) || is(ValueKind::kBool); }
  bool is_number() const { return is_integral() || is(ValueKind::kFloat); }

  // Each accessor may be asked for its own kind only.
  bool boolean() const { return std::get<bool>(data_); }
  const std::string& string() const { return *std::get<std::shared_ptr<const std::string>>(data_); }
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Namespace* name_space() const { return std::get<Namespace*>(data_); }
  const Macro* macro() const { return std::get<const Macro*>(data_); }
  Loop* loop() const { return std::get<Loop*>(data_); }
  const Function& function() const { return *std::get<std::shared_ptr<const Function>>(data_); }
  const Undefined& undefined_name() const { return std::get<Undefined>(data_); }
  /// Of an integral value.
  std::int64_t integer() const { return is(ValueKind::kBool) ? (boolean() ? 1 : 0) : std::get<std::int64_t>(data_); }
  /// Of any number.
  double number() const { return is(ValueKind::kFloat) ? std::get<double>(data_) : static_cast<double>(integer()); }

  /// Levels of lists, dicts and methods bound to one in the value; 0 for what is none of them.
  int depth() const;

  /// Python's truth of the value.
  bool truthy() const;

  /// Python's name of the value's type.
  std::string_view type_name() const;

 private:
  struct None {};

  // In the order of ValueKind.
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const std::string>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, Namespace*, const Macro*, Loop*,
               std::shared_ptr<const Function>>
      data_;
};

/// A list or a tuple.
struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  int depth = 1;
};

/// A mapping that keeps the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;

  /// The value of a key, or null. Keys that are no strings are compared one by one, at the budget's expense.
  const Value* find(Runtime& runtime, const Value& key) const;
  const Value* find_text(std::string_view key) const;

  /// Adds an entry or replaces its value.
  void set(Runtime& runtime, Value key, Value value);
  void set_text(std::string key, Value value);

 private:
  void put(const Value* known, Value key, Value value);

  std::unordered_map<std::string, std::size_t> string_keys_;  // key to place in entries
};

/// What namespace() makes: the one thing a template can change.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;

  /// The attribute, or null. The attributes looked at count against the budget.
  Value* find(Runtime& runtime, std::string_view name);
};

/// Python's ==. Deep, and values may share their parts, so all that is compared counts against the budget; false when
/// that is used up.
bool equal(Runtime& runtime, const Value& a, const Value& b);
bool equal(Runtime& runtime, const std::vector<Value>& a, const std::vector<Value>& b);

/// A string of 1 to 4 bytes for each character of a valid UTF-8 text.
std::vector<Value> characters(std::string_view text);

}  // namespace latte::jinja
