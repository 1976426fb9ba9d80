#include <algorithm>
#include <functional>
#include <unordered_map>

#include "base/fail.h"
#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"

namespace latte::jinja {
namespace {

using Test = std::function<bool(Runtime&, const Value&, const Arguments&)>;

Value first_argument(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.positional.empty()) return arguments.positional[0];
  return runtime.refuse("a test without its argument");
}

Test comparison(const char* op) {
  return [op](Runtime& runtime, const Value& value, const Arguments& arguments) {
    const Value other = first_argument(runtime, arguments);
    return !runtime.failed() && compare(runtime, op, value, other);
  };
}

Test of_kind(ValueKind kind) {
  return [kind](Runtime&, const Value& value, const Arguments&) { return value.is(kind); };
}

bool divisible(Runtime& runtime, const Value& value, const Value& by) {
  const Value remainder = arithmetic(runtime, "%", value, by);
  return remainder.is_number() && remainder.number() == 0;
}

// Python's "is", which templates use with none, true and false.
bool same(Runtime& runtime, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.is_list()) return &a.list() == &b.list();
  if (a.is_dict()) return &a.dict() == &b.dict();
  return equal(runtime, a, b);
}

bool is_callable(const Value& value) { return value.is(ValueKind::kFunction) || value.is(ValueKind::kMacro); }

bool has_length(const Value& value) {
  return value.is_string() || value.is_list() || value.is_dict() || value.is_undefined();
}

bool string_test(Runtime& runtime, const Value& value, const char* method) {
  return call_method(runtime, to_text(runtime, value), method, {}).truthy();
}

const std::unordered_map<std::string_view, Test>& tests() {
  static const std::unordered_map<std::string_view, Test> kTable = {
      {"defined", [](Runtime&, const Value& value, const Arguments&) { return !value.is_undefined(); }},
      {"undefined", of_kind(ValueKind::kUndefined)},
      {"none", of_kind(ValueKind::kNone)},
      {"boolean", of_kind(ValueKind::kBool)},
      {"integer", of_kind(ValueKind::kInt)},
      {"float", of_kind(ValueKind::kFloat)},
      {"string", of_kind(ValueKind::kString)},
      {"mapping", of_kind(ValueKind::kDict)},
      {"number", [](Runtime&, const Value& value, const Arguments&) { return value.is_number(); }},
      {"sequence", [](Runtime&, const Value& value, const Arguments&) { return has_length(value); }},
      {"iterable",
       [](Runtime&, const Value& value, const Arguments&) { return has_length(value) || value.is(ValueKind::kLoop); }},
      {"callable", [](Runtime&, const Value& value, const Arguments&) { return is_callable(value); }},
      {"true",
       [](Runtime&, const Value& value, const Arguments&) { return value.is(ValueKind::kBool) && value.boolean(); }},
      {"false",
       [](Runtime&, const Value& value, const Arguments&) { return value.is(ValueKind::kBool) && !value.boolean(); }},
      {"odd", [](Runtime& runtime, const Value& value,
                 const Arguments&) { return !divisible(runtime, value, std::int64_t{2}); }},
      {"even", [](Runtime& runtime, const Value& value,
                  const Arguments&) { return divisible(runtime, value, std::int64_t{2}); }},
      {"divisibleby",
       [](Runtime& runtime, const Value& value, const Arguments& arguments) {
         return divisible(runtime, value, first_argument(runtime, arguments));
       }},
      {"lower",
       [](Runtime& runtime, const Value& value, const Arguments&) { return string_test(runtime, value, "islower"); }},
      {"upper",
       [](Runtime& runtime, const Value& value, const Arguments&) { return string_test(runtime, value, "isupper"); }},
      {"sameas", [](Runtime& runtime, const Value& value,
                    const Arguments& arguments) { return same(runtime, value, first_argument(runtime, arguments)); }},
      {"filter",
       [](Runtime&, const Value& value, const Arguments&) { return value.is_string() && has_filter(value.string()); }},
      {"test",
       [](Runtime&, const Value& value, const Arguments&) { return value.is_string() && has_test(value.string()); }},
      {"in", comparison("in")},
      {"eq", comparison("==")},
      {"equalto", comparison("==")},
      {"==", comparison("==")},
      {"ne", comparison("!=")},
      {"!=", comparison("!=")},
      {"lt", comparison("<")},
      {"lessthan", comparison("<")},
      {"<", comparison("<")},
      {"le", comparison("<=")},
      {"<=", comparison("<=")},
      {"gt", comparison(">")},
      {"greaterthan", comparison(">")},
      {">", comparison(">")},
      {"ge", comparison(">=")},
      {">=", comparison(">=")},
  };
  return kTable;
}

}  // namespace

bool has_test(std::string_view name) { return tests().count(name) > 0; }

bool apply_test(Runtime& runtime, std::string_view name, const Value& subject, const Arguments& arguments) {
  if (!runtime.charge(8)) return false;
  const auto test = tests().find(name);
  if (test == tests().end()) {
    runtime.refuse(fmt::format("no test named '{}'", name));
    return false;
  }
  return test->second(runtime, subject, arguments);
}

}  // namespace latte::jinja
