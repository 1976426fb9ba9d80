#include "text/jinja_eval.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "base/fail.h"
#include "text/jinja_filters.h"
#include "text/jinja_methods.h"
#include "text/jinja_operators.h"
#include "text/jinja_print.h"
#include "text/jinja_runtime.h"
#include "text/json_text.h"
#include "text/type_words.h"

namespace latte::jinja {
namespace {

using ScopePtr = std::shared_ptr<Scope>;

enum class Flow { kNormal, kBreak, kContinue };

class Evaluator {
 public:
  explicit Evaluator(std::time_t now) : runtime_(now) {}

  Result<std::string> run(const Ast& ast, const RenderInput& input) {
    auto globals = std::make_shared<Scope>();
    for (const char* name : {"range", "dict", "namespace", "raise_exception", "strftime_now"}) {
      globals->set(runtime_, name, Function{name, nullptr});
    }
    for (const auto& [name, value] : input.names) globals->set(runtime_, name, value);
    const ScopePtr scope = inner(globals);
    std::string out;
    run_body(ast.body, scope, out);
    if (runtime_.failed()) return runtime_.error();
    return out;
  }

 private:
  static ScopePtr inner(const ScopePtr& scope) {
    auto made = std::make_shared<Scope>();
    made->parent = scope;
    return made;
  }

  // Counts one level of recursion for as long as it lives.
  class Depth {
   public:
    Depth(Evaluator& evaluator, int line) : evaluator_(evaluator) {
      evaluator_.runtime_.set_line(line);
      evaluator_.runtime_.charge(kWorkPerNode);
      if (++evaluator_.depth_ > kMaxCallDepth) {
        evaluator_.runtime_.refuse("calls and expressions nested too deep; a macro may call itself without end");
      }
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --evaluator_.depth_; }

   private:
    Evaluator& evaluator_;
  };

  void write(std::string_view text, std::string& out) { runtime_.append(out, text); }

  Flow run_body(const Body& body, const ScopePtr& scope, std::string& out) {
    for (const Statement* statement : body) {
      const Flow flow = run_statement(*statement, scope, out);
      if (runtime_.failed()) return Flow::kBreak;
      if (flow != Flow::kNormal) return flow;
    }
    return Flow::kNormal;
  }

  // The text of a body with names of its own.
  Value captured(const Body& body, const ScopePtr& scope) {
    std::string text;
    run_body(body, scope, text);
    return runtime_.make_string(std::move(text));
  }

  Flow run_statement(const Statement& statement, const ScopePtr& scope, std::string& out) {
    const Depth depth(*this, statement.line);
    if (runtime_.failed()) return Flow::kBreak;
    switch (statement.kind) {
      case StatementKind::kText:
        write(statement.text, out);
        break;
      case StatementKind::kOutput:
        write(to_text(runtime_, evaluate(*statement.expr, scope)), out);
        break;
      case StatementKind::kIf:
        for (const Branch& branch : statement.branches) {
          if (branch.condition == nullptr || evaluate(*branch.condition, scope).truthy()) {
            return run_body(branch.body, scope, out);
          }
        }
        break;
      case StatementKind::kFor:
        write(loop_text(statement, evaluate(*statement.expr, scope), scope, 0), out);
        break;
      case StatementKind::kSet:
        assign(*statement.target, evaluate(*statement.expr, scope), scope);
        break;
      case StatementKind::kSetBlock: {
        Value text = captured(statement.body, inner(scope));
        if (statement.filter != nullptr) text = filtered(*statement.filter, text, scope);
        assign(*statement.target, std::move(text), scope);
        break;
      }
      case StatementKind::kMacro:
        if (const Macro* macro = runtime_.make_macro({&statement, scope})) scope->set(runtime_, statement.text, macro);
        break;
      case StatementKind::kCallBlock:
        if (const Macro* caller = runtime_.make_macro({&statement, scope})) {
          Arguments arguments = evaluate_arguments(*statement.expr, scope);
          arguments.named.emplace_back("caller", caller);
          write(to_text(runtime_, call(evaluate(*statement.expr->base, scope), arguments)), out);
        }
        break;
      case StatementKind::kFilterBlock:
        write(to_text(runtime_, filtered(*statement.filter, captured(statement.body, inner(scope)), scope)), out);
        break;
      case StatementKind::kWith: {
        const ScopePtr names = inner(scope);
        for (const auto& [target, value] : statement.bindings) assign(*target, evaluate(*value, scope), names);
        return run_body(statement.body, names, out);
      }
      case StatementKind::kScope:
        return run_body(statement.body, inner(scope), out);
      case StatementKind::kBreak:
        return Flow::kBreak;
      case StatementKind::kContinue:
        return Flow::kContinue;
    }
    return Flow::kNormal;
  }

  void assign(const Expr& target, Value value, const ScopePtr& scope) {
    if (runtime_.failed()) return;
    if (target.kind == ExprKind::kName) {
      scope->set(runtime_, target.name, std::move(value));
      return;
    }
    if (target.kind == ExprKind::kAttribute) {
      const Value* base = scope->find(runtime_, target.base->name);
      if (base == nullptr || !base->is(ValueKind::kNamespace)) {
        runtime_.refuse(
            fmt::format("cannot set {}.{}: {} is no namespace", target.base->name, target.name, target.base->name));
        return;
      }
      set_attribute(*base->name_space(), target.name, std::move(value));
      return;
    }
    const std::vector<Value> parts = iterate(runtime_, value);
    if (parts.size() != target.items.size()) {
      runtime_.refuse(fmt::format("{} values for {} names", parts.size(), target.items.size()));
      return;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) assign(*target.items[i], parts[i], scope);
  }

  void set_attribute(Namespace& names, std::string_view name, Value value) {
    if (Value* known = names.find(runtime_, name)) {
      *known = std::move(value);
    } else {
      names.attributes.emplace_back(name, std::move(value));
    }
  }

  std::string loop_text(const Statement& statement, const Value& iterable, const ScopePtr& scope, int depth) {
    std::string out;
    std::vector<Value> items = iterate(runtime_, iterable);
    if (statement.filter != nullptr) {
      std::vector<Value> kept;
      for (Value& item : items) {
        const ScopePtr names = inner(scope);
        assign(*statement.target, item, names);
        if (runtime_.failed()) return out;
        if (evaluate(*statement.filter, names).truthy()) kept.push_back(std::move(item));
      }
      items = std::move(kept);
    }
    if (items.empty()) {
      run_body(statement.else_body, inner(scope), out);
      return out;
    }
    const Value list = runtime_.make_list(std::move(items));
    if (!list.is_list()) return out;
    const auto shared = std::make_shared<const List>(list.list());
    Loop* loop = runtime_.make_loop({.items = shared,
                                     .index = 0,
                                     .depth = depth,
                                     .statement = statement.recursive ? &statement : nullptr,
                                     .scope = scope,
                                     .last_changed = {},
                                     .has_changed = false});
    bool any_ended = false;
    for (std::size_t i = 0; loop != nullptr && i < shared->items.size() && !runtime_.failed(); ++i) {
      loop->index = i;
      const ScopePtr names = inner(scope);
      names->set(runtime_, "loop", loop);
      assign(*statement.target, shared->items[i], names);
      const Flow flow = run_body(statement.body, names, out);
      any_ended = any_ended || flow == Flow::kNormal;
      if (flow == Flow::kBreak) break;
    }
    // As in Jinja: the else part follows whenever no round came to the end of the body, break and continue included.
    if (!any_ended) run_body(statement.else_body, inner(scope), out);
    return out;
  }

  Value call_loop(const Loop& loop, const Arguments& arguments) {
    if (loop.statement == nullptr) return runtime_.refuse("loop() in a loop that is not recursive");
    if (arguments.positional.size() != 1) return runtime_.refuse("loop() takes one argument");
    return runtime_.make_string(loop_text(*loop.statement, arguments.positional[0], loop.scope, loop.depth + 1));
  }

  Value call_macro(const Macro& macro, const Arguments& arguments) {
    const Statement& definition = *macro.definition;
    const Depth depth(*this, definition.line);
    const ScopePtr names = inner(macro.scope);
    std::vector<std::pair<std::string, Value>> extra;
    for (const auto& [name, value] : arguments.named) {
      const bool known = std::any_of(definition.parameters.begin(), definition.parameters.end(),
                                     [&name = name](const Parameter& parameter) { return parameter.name == name; });
      if (name == "caller" && definition.takes_caller) {
        names->set(runtime_, name, value);
      } else if (!known) {
        extra.emplace_back(name, value);
      }
    }
    if (!extra.empty() && !definition.takes_extra_named) {
      return runtime_.refuse(fmt::format("macro '{}' has no parameter '{}'", definition.text, extra[0].first));
    }
    for (std::size_t i = 0; i < definition.parameters.size(); ++i) {
      const Parameter& parameter = definition.parameters[i];
      const Value* given = arguments.find(i, parameter.name);
      if (given != nullptr) {
        names->set(runtime_, parameter.name, *given);
      } else {
        names->set(
            runtime_, parameter.name,
            parameter.fallback == nullptr ? Value::undefined(parameter.name) : evaluate(*parameter.fallback, names));
      }
    }
    bind_extra(definition, arguments, std::move(extra), names);
    if (runtime_.failed()) return {};
    return captured(definition.body, names);
  }

  void bind_extra(const Statement& definition, const Arguments& arguments,
                  std::vector<std::pair<std::string, Value>> extra, const ScopePtr& names) {
    const std::size_t count = definition.parameters.size();
    if (arguments.positional.size() > count && !definition.takes_extra_positional) {
      runtime_.refuse(fmt::format("macro '{}' takes at most {} arguments", definition.text, count));
      return;
    }
    if (definition.takes_extra_positional) {
      std::vector<Value> rest;
      for (std::size_t i = count; i < arguments.positional.size(); ++i) rest.push_back(arguments.positional[i]);
      names->set(runtime_, "varargs", runtime_.make_list(std::move(rest), true));
    }
    if (definition.takes_extra_named) {
      Dict named;
      for (auto& [name, value] : extra) named.set_text(name, std::move(value));
      names->set(runtime_, "kwargs", runtime_.make_dict(std::move(named)));
    }
  }

  Arguments evaluate_arguments(const Expr& expr, const ScopePtr& scope) {
    Arguments arguments;
    for (const Expr* item : expr.items) arguments.positional.push_back(evaluate(*item, scope));
    for (const auto& [name, item] : expr.named) arguments.named.emplace_back(name, evaluate(*item, scope));
    return arguments;
  }

  Value call(const Value& callee, const Arguments& arguments) {
    if (runtime_.failed()) return {};
    if (callee.is(ValueKind::kMacro)) return call_macro(*callee.macro(), arguments);
    if (callee.is(ValueKind::kLoop)) return call_loop(*callee.loop(), arguments);
    if (callee.is(ValueKind::kFunction)) {
      const Function& function = callee.function();
      return function.self != nullptr ? call_method(runtime_, *function.self, function.name, arguments)
                                      : call_global(function.name, arguments);
    }
    if (callee.is_undefined()) {
      const auto& name = callee.undefined_name().name;
      return runtime_.refuse(
          fmt::format("{} is undefined and cannot be called", name == nullptr ? "a value" : quote_for_error(*name)));
    }
    return runtime_.refuse(fmt::format("{} cannot be called", with_article(callee.type_name())));
  }

  Value call_global(std::string_view name, const Arguments& arguments) {
    if (name == "range") return range(arguments);
    if (name == "dict" || name == "namespace") return make_mapping(name == "namespace", arguments);
    const Value* first = arguments.find(0, name == "raise_exception" ? "message" : "format");
    if (name == "raise_exception") {
      const std::string message = first == nullptr ? "" : to_text(runtime_, *first);
      return runtime_.refuse(fmt::format("the template says: {}", message));
    }
    if (first == nullptr || !first->is_string()) return runtime_.refuse("strftime_now without a format");
    return now_text(first->string());
  }

  Value now_text(const std::string& format) {
    if (format.find('\0') != std::string::npos) return runtime_.refuse("strftime_now: a format with a null character");
    if (format.size() > 1000) return runtime_.refuse("strftime_now: a format of more than 1000 bytes");
    const std::time_t now = runtime_.now();
    std::tm local{};
    if (localtime_r(&now, &local) == nullptr) return runtime_.refuse("strftime_now: the time is out of range");
    // An empty result is no error of strftime, so a mark is printed along.
    std::vector<char> buffer(format.size() * 64 + 64);
    const std::size_t size = std::strftime(buffer.data(), buffer.size(), (format + "!").c_str(), &local);
    return runtime_.make_string(std::string(buffer.data(), size == 0 ? 0 : size - 1));
  }

  Value range(const Arguments& arguments) {
    std::array<std::int64_t, 3> bounds = {0, 0, 1};
    const auto& given = arguments.positional;
    if (given.empty() || given.size() > 3) return runtime_.refuse("range takes one to three integers");
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!given[i].is_integral())
        return runtime_.refuse(fmt::format("range of {}, expected an int", with_article(given[i].type_name())));
      bounds[i] = given[i].integer();
    }
    if (given.size() == 1) bounds = {0, bounds[0], 1};
    const auto [start, stop, step] = bounds;
    if (step == 0) return runtime_.refuse("range with a step of 0");
    constexpr std::size_t kMaxRange = 100'000;  // Jinja's own bound
    std::vector<Value> items;
    std::int64_t at = start;
    while (step > 0 ? at < stop : at > stop) {
      if (items.size() == kMaxRange) return runtime_.refuse(fmt::format("a range of more than {}", kMaxRange));
      items.emplace_back(at);
      if (__builtin_add_overflow(at, step, &at)) break;
    }
    return runtime_.make_list(std::move(items));
  }

  // dict(...) and namespace(...): a mapping or pairs, then named arguments.
  Value make_mapping(bool as_namespace, const Arguments& arguments) {
    Dict dict;
    for (const Value& source : arguments.positional) {
      if (source.is_dict()) {
        for (const auto& [key, value] : source.dict().entries) {
          if (!runtime_.charge(kWorkPerElement)) return {};
          dict.set(runtime_, key, value);
        }
        continue;
      }
      for (const Value& pair : iterate(runtime_, source)) {
        if (pair.is_list() && pair.list().items.size() == 2) {
          dict.set(runtime_, pair.list().items[0], pair.list().items[1]);
        } else {
          return runtime_.refuse("dict() of something that holds no pairs");
        }
      }
    }
    for (const auto& [name, value] : arguments.named) dict.set_text(name, value);
    if (!as_namespace) return runtime_.make_dict(std::move(dict));
    Namespace* names = runtime_.make_namespace();
    if (names == nullptr) return {};
    for (auto& [key, value] : dict.entries) set_attribute(*names, to_text(runtime_, key), std::move(value));
    return names;
  }

  Value evaluate(const Expr& expr, const ScopePtr& scope) {
    const Depth depth(*this, expr.line);
    if (runtime_.failed()) return {};
    switch (expr.kind) {
      case ExprKind::kConstant:
        return expr.value;
      case ExprKind::kName: {
        const Value* found = scope->find(runtime_, expr.name);
        return found == nullptr ? Value::undefined(expr.name) : *found;
      }
      case ExprKind::kList:
      case ExprKind::kTuple:
        return runtime_.make_list(evaluate_arguments(expr, scope).positional, expr.kind == ExprKind::kTuple);
      case ExprKind::kDict:
        return evaluate_dict(expr, scope);
      case ExprKind::kAttribute:
        return attribute(runtime_, evaluate(*expr.base, scope), expr.name);
      case ExprKind::kItem: {
        const Value base = evaluate(*expr.base, scope);
        return subscript(runtime_, base, evaluate(*expr.items[0], scope));
      }
      case ExprKind::kSlice: {
        const Value base = evaluate(*expr.base, scope);
        std::array<Value, 3> bounds = {nullptr, nullptr, nullptr};
        for (std::size_t i = 0; i < 3; ++i) {
          if (expr.items[i] != nullptr) bounds[i] = evaluate(*expr.items[i], scope);
        }
        return slice(runtime_, base, bounds[0], bounds[1], bounds[2]);
      }
      case ExprKind::kCall: {
        const Value callee = evaluate(*expr.base, scope);
        const Arguments arguments = evaluate_arguments(expr, scope);
        runtime_.set_line(expr.line);
        return call(callee, arguments);
      }
      case ExprKind::kFilter: {
        const Value subject = evaluate(*expr.base, scope);
        return apply_filter(runtime_, expr.name, subject, evaluate_arguments(expr, scope));
      }
      case ExprKind::kTest: {
        const Value subject = evaluate(*expr.base, scope);
        return apply_test(runtime_, expr.name, subject, evaluate_arguments(expr, scope));
      }
      default:
        return evaluate_operator(expr, scope);
    }
  }

  Value evaluate_operator(const Expr& expr, const ScopePtr& scope) {
    switch (expr.kind) {
      case ExprKind::kNegate:
        return arithmetic(runtime_, "-", std::int64_t{0}, evaluate(*expr.base, scope));
      case ExprKind::kPlus:
        return arithmetic(runtime_, "+", std::int64_t{0}, evaluate(*expr.base, scope));
      case ExprKind::kNot:
        return !evaluate(*expr.base, scope).truthy();
      case ExprKind::kAnd: {
        Value left = evaluate(*expr.base, scope);
        return left.truthy() ? evaluate(*expr.items[0], scope) : left;
      }
      case ExprKind::kOr: {
        Value left = evaluate(*expr.base, scope);
        return left.truthy() ? left : evaluate(*expr.items[0], scope);
      }
      case ExprKind::kBinary: {
        const Value left = evaluate(*expr.base, scope);
        return arithmetic(runtime_, expr.name, left, evaluate(*expr.items[0], scope));
      }
      case ExprKind::kConcat: {
        std::string text;
        for (const Expr* item : expr.items) {
          if (!runtime_.append(text, to_text(runtime_, evaluate(*item, scope)))) return {};
        }
        return runtime_.make_string(std::move(text));
      }
      case ExprKind::kCompare: {
        Value left = evaluate(*expr.base, scope);
        for (std::size_t i = 0; i < expr.items.size(); ++i) {
          Value right = evaluate(*expr.items[i], scope);
          if (!compare(runtime_, expr.operators[i], left, right)) return false;
          left = std::move(right);
        }
        return true;
      }
      default: {  // kConditional
        if (evaluate(*expr.base, scope).truthy()) return evaluate(*expr.items[0], scope);
        if (expr.items[1] != nullptr) return evaluate(*expr.items[1], scope);
        return Value::undefined("the inline if without else");
      }
    }
  }

  Value evaluate_dict(const Expr& expr, const ScopePtr& scope) {
    Dict dict;
    for (std::size_t i = 0; i + 1 < expr.items.size(); i += 2) {
      Value key = evaluate(*expr.items[i], scope);
      if (key.is_dict() || (key.is_list() && !key.list().is_tuple)) {
        return runtime_.refuse(fmt::format("{} cannot be the key of a dict", with_article(key.type_name())));
      }
      dict.set(runtime_, std::move(key), evaluate(*expr.items[i + 1], scope));
    }
    return runtime_.make_dict(std::move(dict));
  }

  // A chain of filters whose innermost has no subject of its own.
  Value filtered(const Expr& filter, const Value& subject, const ScopePtr& scope) {
    const Depth depth(*this, filter.line);
    if (runtime_.failed()) return {};
    const Value input = filter.base == nullptr ? subject : filtered(*filter.base, subject, scope);
    return apply_filter(runtime_, filter.name, input, evaluate_arguments(filter, scope));
  }

  Runtime runtime_;
  int depth_ = 0;
};

}  // namespace

Result<std::string> render(const Ast& ast, const RenderInput& input) { return Evaluator(input.now).run(ast, input); }

}  // namespace latte::jinja
