#include "text/jinja_parser.h"

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/fail.h"
#include "text/jinja_lexer.h"
#include "text/json_text.h"

namespace latte::jinja {
namespace {

// Deepest nesting of expressions and statements; the parser and the evaluator recurse along it.
constexpr int kMaxNesting = 120;

// A recursive descent parser after Jinja's own grammar. The first error ends the token stream, which makes every loop
// below stop by itself; nodes returned after it are never looked at.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Ast> run() {
    ast_.body = body({});
    if (error_.has_value()) return std::move(*error_);
    return std::move(ast_);
  }

 private:
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool at_end() const { return current().kind == TokenKind::kEnd; }

  Token take() {
    Token token = current();
    if (!at_end()) ++at_;
    return token;
  }

  void refuse(int line, std::string_view message) {
    if (!error_.has_value()) error_ = fail(ErrorKind::kInvalidInput, "line {}: {}", line, message);
    at_ = tokens_.size() - 1;
  }

  static std::string describe(const Token& token) {
    switch (token.kind) {
      case TokenKind::kText:
        return "text";
      case TokenKind::kBlockBegin:
        return "{%";
      case TokenKind::kBlockEnd:
        return "%}";
      case TokenKind::kVariableBegin:
        return "{{";
      case TokenKind::kVariableEnd:
        return "}}";
      case TokenKind::kEnd:
        return "the end of the template";
      default:
        return quote_for_error(token.text);
    }
  }

  void expected(std::string_view what) {
    refuse(current().line, fmt::format("{}, expected {}", describe(current()), what));
  }

  bool skip_operator(std::string_view symbol) {
    if (!current().is_operator(symbol)) return false;
    take();
    return true;
  }

  bool skip_name(std::string_view name) {
    if (!current().is_name(name)) return false;
    take();
    return true;
  }

  void expect_operator(std::string_view symbol) {
    if (!skip_operator(symbol)) expected(fmt::format("'{}'", symbol));
  }

  std::string expect_name() {
    if (current().kind != TokenKind::kName) {
      expected("a name");
      return {};
    }
    return take().text;
  }

  void expect_block_end() {
    if (current().kind != TokenKind::kBlockEnd) return expected("%}");
    take();
  }

  Expr* make(ExprKind kind, int line) {
    Expr& node = ast_.expressions.emplace_back();
    node.kind = kind;
    node.line = line;
    return &node;
  }

  Expr* make(ExprKind kind, int line, const Expr* base, std::string name = {}) {
    Expr* node = make(kind, line);
    node->base = base;
    node->name = std::move(name);
    return node;
  }

  Expr* constant(Value value, int line) {
    Expr* node = make(ExprKind::kConstant, line);
    node->value = std::move(value);
    return node;
  }

  Statement* make_statement(StatementKind kind, int line) {
    Statement& node = ast_.statements.emplace_back();
    node.kind = kind;
    node.line = line;
    return &node;
  }

  // Counts one level of nesting for as long as it lives.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > kMaxNesting) {
        parser_.refuse(parser_.current().line, fmt::format("nested deeper than {} levels", kMaxNesting));
      }
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  // Statements up to a tag whose name is in `ends`; stops behind that name. Without `ends`, up to the end.
  Body body(std::initializer_list<std::string_view> ends) {
    const Nesting nesting(*this);
    Body result;
    while (!at_end()) {
      const Token token = take();
      if (token.kind == TokenKind::kText) {
        Statement* node = make_statement(StatementKind::kText, token.line);
        node->text = token.text;
        result.push_back(node);
      } else if (token.kind == TokenKind::kVariableBegin) {
        Statement* node = make_statement(StatementKind::kOutput, token.line);
        node->expr = tuple(true);
        if (current().kind != TokenKind::kVariableEnd) {
          expected("}}");
        } else {
          take();
        }
        result.push_back(node);
      } else {
        const std::string name = expect_name();
        if (std::find(ends.begin(), ends.end(), name) != ends.end()) {
          end_tag_ = name;
          return result;
        }
        if (const Statement* node = statement(name, token.line)) result.push_back(node);
      }
    }
    if (ends.size() > 0 && !error_.has_value()) {
      refuse(current().line, fmt::format("the end of the template, expected {{% {} %}}", *(ends.end() - 1)));
    }
    return result;
  }

  Body block_body(std::initializer_list<std::string_view> ends) {
    expect_block_end();
    return body(ends);
  }

  const Statement* statement(const std::string& name, int line) {
    if (name == "if") return if_statement(line);
    if (name == "for") return for_statement(line);
    if (name == "set") return set_statement(line);
    if (name == "macro") return macro_statement(line);
    if (name == "call") return call_statement(line);
    if (name == "filter") return filter_statement(line);
    if (name == "with") return with_statement(line);
    if (name == "generation") {
      Statement* node = make_statement(StatementKind::kScope, line);
      node->body = block_body({"endgeneration"});
      expect_block_end();
      return node;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) refuse(line, fmt::format("{{% {} %}} outside of a for loop", name));
      expect_block_end();
      return make_statement(name == "break" ? StatementKind::kBreak : StatementKind::kContinue, line);
    }
    refuse(line, fmt::format("{{% {} %}}, expected if, for, set, macro, call, filter, with, generation, raw, break or "
                             "continue",
                             name));
    return nullptr;
  }

  const Statement* if_statement(int line) {
    Statement* node = make_statement(StatementKind::kIf, line);
    bool more = true;
    while (more && !at_end()) {
      const Expr* condition = tuple(false);
      node->branches.push_back({condition, block_body({"elif", "else", "endif"})});
      more = end_tag_ == "elif";
    }
    if (end_tag_ == "else") node->branches.push_back({nullptr, block_body({"endif"})});
    expect_block_end();
    return node;
  }

  const Statement* for_statement(int line) {
    Statement* node = make_statement(StatementKind::kFor, line);
    node->target = target(false);
    if (!skip_name("in")) expected("in");
    node->expr = tuple(false);
    if (skip_name("if")) node->filter = expression();
    node->recursive = skip_name("recursive");
    ++loops_;
    node->body = block_body({"else", "endfor"});
    --loops_;
    if (end_tag_ == "else") node->else_body = block_body({"endfor"});
    expect_block_end();
    return node;
  }

  const Statement* set_statement(int line) {
    Statement* node = make_statement(StatementKind::kSet, line);
    node->target = target(true);
    if (skip_operator("=")) {
      node->expr = tuple(true);
      expect_block_end();
      return node;
    }
    node->kind = StatementKind::kSetBlock;
    node->filter = filter_chain(nullptr);
    node->body = block_body({"endset"});
    expect_block_end();
    return node;
  }

  const Statement* macro_statement(int line) {
    Statement* node = make_statement(StatementKind::kMacro, line);
    node->text = expect_name();
    macro_rest(node, "endmacro", true);
    return node;
  }

  const Statement* call_statement(int line) {
    Statement* node = make_statement(StatementKind::kCallBlock, line);
    node->text = "caller";
    if (current().is_operator("(")) parameters(node);
    node->expr = expression();
    if (node->expr->kind != ExprKind::kCall && !error_.has_value()) refuse(line, "{% call %} without a call");
    macro_rest(node, "endcall", false);
    return node;
  }

  void parameters(Statement* node) {
    expect_operator("(");
    while (!current().is_operator(")") && !at_end()) {
      if (!node->parameters.empty()) expect_operator(",");
      if (current().is_operator(")")) break;
      Parameter parameter{expect_name(), nullptr};
      if (skip_operator("=")) {
        parameter.fallback = expression();
      } else if (!node->parameters.empty() && node->parameters.back().fallback != nullptr) {
        expected("a default, as the parameter before has one");
      }
      node->parameters.push_back(std::move(parameter));
    }
    expect_operator(")");
  }

  void macro_rest(Statement* node, std::string_view end, bool with_parameters) {
    if (with_parameters) parameters(node);
    const std::size_t from = at_;
    const int outer_loops = std::exchange(loops_, 0);
    node->body = block_body({end});
    loops_ = outer_loops;
    for (std::size_t i = from; i < at_; ++i) {
      node->takes_extra_positional = node->takes_extra_positional || tokens_[i].is_name("varargs");
      node->takes_extra_named = node->takes_extra_named || tokens_[i].is_name("kwargs");
      node->takes_caller = node->takes_caller || tokens_[i].is_name("caller");
    }
    expect_block_end();
  }

  const Statement* filter_statement(int line) {
    Statement* node = make_statement(StatementKind::kFilterBlock, line);
    node->filter = filter_chain(one_filter(nullptr));
    node->body = block_body({"endfilter"});
    expect_block_end();
    return node;
  }

  const Statement* with_statement(int line) {
    Statement* node = make_statement(StatementKind::kWith, line);
    while (current().kind != TokenKind::kBlockEnd && !at_end()) {
      if (!node->bindings.empty()) expect_operator(",");
      const Expr* name = target(false);
      expect_operator("=");
      node->bindings.emplace_back(name, expression());
    }
    node->body = block_body({"endwith"});
    expect_block_end();
    return node;
  }

  // What for and set write to: a name, names in a (nested) tuple, or an attribute of a namespace.
  const Expr* target(bool with_namespace) {
    const Nesting nesting(*this);
    const int line = current().line;
    std::vector<const Expr*> parts;
    bool is_tuple = false;
    while (!at_end()) {
      if (skip_operator("(")) {
        parts.push_back(target(with_namespace));
        expect_operator(")");
      } else {
        const Token name = current();
        Expr* node = make(ExprKind::kName, name.line);
        node->name = expect_name();
        if (node->name == "true" || node->name == "false" || node->name == "none" || node->name == "True" ||
            node->name == "False" || node->name == "None") {
          refuse(name.line, fmt::format("cannot assign to {}", node->name));
        }
        if (with_namespace && skip_operator(".")) node = make(ExprKind::kAttribute, name.line, node, expect_name());
        parts.push_back(node);
      }
      if (!skip_operator(",")) break;
      is_tuple = true;
      if (current().is_name("in") || current().is_operator("=") || current().is_operator(")")) break;
    }
    if (!is_tuple && !parts.empty()) return parts[0];
    Expr* node = make(ExprKind::kTuple, line);
    node->items = std::move(parts);
    return node;
  }

  // One expression, or several with commas between as a tuple.
  const Expr* tuple(bool with_condition) {
    const int line = current().line;
    const auto part = [&] { return with_condition ? expression() : or_expression(); };
    const Expr* first = part();
    if (!current().is_operator(",")) return first;
    Expr* node = make(ExprKind::kTuple, line);
    node->items.push_back(first);
    while (skip_operator(",")) {
      if (current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd ||
          current().is_operator(")")) {
        break;
      }
      node->items.push_back(part());
    }
    return node;
  }

  const Expr* expression() {
    const Nesting nesting(*this);
    const Expr* value = or_expression();
    while (current().is_name("if")) {
      const int line = take().line;
      Expr* node = make(ExprKind::kConditional, line, or_expression());
      node->items = {value, skip_name("else") ? expression() : nullptr};
      value = node;
    }
    return value;
  }

  const Expr* or_expression() {
    const Expr* left = and_expression();
    while (current().is_name("or")) {
      Expr* node = make(ExprKind::kOr, take().line, left);
      node->items.push_back(and_expression());
      left = node;
    }
    return left;
  }

  const Expr* and_expression() {
    const Expr* left = not_expression();
    while (current().is_name("and")) {
      Expr* node = make(ExprKind::kAnd, take().line, left);
      node->items.push_back(not_expression());
      left = node;
    }
    return left;
  }

  const Expr* not_expression() {
    if (!current().is_name("not")) return comparison();
    const Nesting nesting(*this);
    const int line = take().line;
    return make(ExprKind::kNot, line, not_expression());
  }

  std::optional<std::string> comparison_operator() {
    for (const std::string_view symbol : {"==", "!=", "<", "<=", ">", ">="}) {
      if (skip_operator(symbol)) return std::string(symbol);
    }
    if (skip_name("in")) return "in";
    if (current().is_name("not") && ahead().is_name("in")) {
      take();
      take();
      return "not in";
    }
    return std::nullopt;
  }

  const Expr* comparison() {
    const int line = current().line;
    const Expr* left = sum();
    Expr* node = nullptr;
    while (auto symbol = comparison_operator()) {
      if (node == nullptr) node = make(ExprKind::kCompare, line, left);
      node->operators.push_back(std::move(*symbol));
      node->items.push_back(sum());
    }
    return node == nullptr ? left : node;
  }

  const Expr* sum() {
    const Expr* left = concatenation();
    while (current().is_operator("+") || current().is_operator("-")) {
      const Token symbol = take();
      Expr* node = make(ExprKind::kBinary, symbol.line, left, symbol.text);
      node->items.push_back(concatenation());
      left = node;
    }
    return left;
  }

  const Expr* concatenation() {
    const int line = current().line;
    const Expr* first = product();
    if (!current().is_operator("~")) return first;
    Expr* node = make(ExprKind::kConcat, line);
    node->items.push_back(first);
    while (skip_operator("~")) node->items.push_back(product());
    return node;
  }

  const Expr* product() {
    const Expr* left = power();
    while (current().is_operator("*") || current().is_operator("/") || current().is_operator("//") ||
           current().is_operator("%")) {
      const Token symbol = take();
      Expr* node = make(ExprKind::kBinary, symbol.line, left, symbol.text);
      node->items.push_back(power());
      left = node;
    }
    return left;
  }

  const Expr* power() {
    const Expr* left = unary(true);
    while (current().is_operator("**")) {
      const int line = take().line;
      Expr* node = make(ExprKind::kBinary, line, left, "**");
      node->items.push_back(unary(true));
      left = node;
    }
    return left;
  }

  const Expr* unary(bool with_filter) {
    const Nesting nesting(*this);
    const int line = current().line;
    const Expr* node = nullptr;
    if (skip_operator("-")) {
      node = make(ExprKind::kNegate, line, unary(false));
    } else if (skip_operator("+")) {
      node = make(ExprKind::kPlus, line, unary(false));
    } else {
      node = primary();
    }
    node = postfix(node);
    return with_filter ? filters_and_tests(node) : node;
  }

  const Expr* primary() {
    const Token token = take();
    switch (token.kind) {
      case TokenKind::kName: {
        if (token.text == "true" || token.text == "True") return constant(true, token.line);
        if (token.text == "false" || token.text == "False") return constant(false, token.line);
        if (token.text == "none" || token.text == "None") return constant(nullptr, token.line);
        Expr* node = make(ExprKind::kName, token.line);
        node->name = token.text;
        return node;
      }
      case TokenKind::kString: {
        std::string text = token.text;
        while (current().kind == TokenKind::kString) text += take().text;
        return constant(std::move(text), token.line);
      }
      case TokenKind::kInteger:
        return constant(token.integer, token.line);
      case TokenKind::kFloat:
        return constant(token.number, token.line);
      default:
        break;
    }
    if (token.is_operator("(")) {
      if (skip_operator(")")) return make(ExprKind::kTuple, token.line);
      const Expr* node = tuple(true);
      expect_operator(")");
      return node;
    }
    if (token.is_operator("[")) return list_literal(token.line);
    if (token.is_operator("{")) return dict_literal(token.line);
    refuse(token.line, fmt::format("{}, expected an expression", describe(token)));
    return constant(nullptr, token.line);
  }

  const Expr* list_literal(int line) {
    Expr* node = make(ExprKind::kList, line);
    while (!current().is_operator("]") && !at_end()) {
      if (!node->items.empty()) expect_operator(",");
      if (current().is_operator("]")) break;
      node->items.push_back(expression());
    }
    expect_operator("]");
    return node;
  }

  const Expr* dict_literal(int line) {
    Expr* node = make(ExprKind::kDict, line);
    while (!current().is_operator("}") && !at_end()) {
      if (!node->items.empty()) expect_operator(",");
      if (current().is_operator("}")) break;
      node->items.push_back(expression());
      expect_operator(":");
      node->items.push_back(expression());
    }
    expect_operator("}");
    return node;
  }

  const Expr* postfix(const Expr* node) {
    while (true) {
      const int line = current().line;
      if (skip_operator(".")) {
        if (current().kind == TokenKind::kInteger) {
          Expr* item = make(ExprKind::kItem, line, node);
          item->items.push_back(constant(take().integer, line));
          node = item;
        } else {
          node = make(ExprKind::kAttribute, line, node, expect_name());
        }
      } else if (skip_operator("[")) {
        node = subscript(node, line);
      } else if (current().is_operator("(")) {
        Expr* call = make(ExprKind::kCall, line, node);
        arguments(call);
        node = call;
      } else {
        return node;
      }
    }
  }

  const Expr* subscript(const Expr* base, int line) {
    std::vector<const Expr*> parts;
    const Expr* part = nullptr;
    bool is_slice = false;
    while (!current().is_operator("]") && !at_end()) {
      if (skip_operator(":")) {
        is_slice = true;
        parts.push_back(std::exchange(part, nullptr));
        if (parts.size() > 2) expected("at most two colons");
      } else if (part == nullptr) {
        part = tuple(true);
      } else {
        expected("']'");
      }
    }
    expect_operator("]");
    parts.push_back(part);
    Expr* node = make(is_slice ? ExprKind::kSlice : ExprKind::kItem, line, base);
    if (!is_slice && part == nullptr) refuse(line, "an empty subscript");
    if (is_slice) parts.resize(3, nullptr);
    node->items = std::move(parts);
    return node;
  }

  void arguments(Expr* call) {
    expect_operator("(");
    bool first = true;
    while (!current().is_operator(")") && !at_end()) {
      if (!std::exchange(first, false)) expect_operator(",");
      if (current().is_operator(")")) break;
      if (current().is_operator("*") || current().is_operator("**")) {
        expected("an argument; * and ** are not supported");
      } else if (current().kind == TokenKind::kName && ahead().is_operator("=")) {
        std::string name = take().text;
        take();
        call->named.emplace_back(std::move(name), expression());
      } else {
        if (!call->named.empty()) expected("a named argument, as the one before is named");
        call->items.push_back(expression());
      }
    }
    expect_operator(")");
  }

  std::string dotted_name() {
    std::string name = expect_name();
    while (skip_operator(".")) name.append(1, '.').append(expect_name());
    return name;
  }

  const Expr* one_filter(const Expr* base) {
    const int line = current().line;
    Expr* node = make(ExprKind::kFilter, line, base, dotted_name());
    if (current().is_operator("(")) arguments(node);
    return node;
  }

  const Expr* filter_chain(const Expr* base) {
    while (skip_operator("|")) base = one_filter(base);
    return base;
  }

  const Expr* filters_and_tests(const Expr* node) {
    while (true) {
      if (skip_operator("|")) {
        node = one_filter(node);
      } else if (current().is_name("is")) {
        node = one_test(node);
      } else if (current().is_operator("(")) {
        Expr* call = make(ExprKind::kCall, current().line, node);
        arguments(call);
        node = call;
      } else {
        return node;
      }
    }
  }

  const Expr* one_test(const Expr* base) {
    const int line = take().line;
    const bool negated = skip_name("not");
    Expr* node = make(ExprKind::kTest, line, base, dotted_name());
    const TokenKind kind = current().kind;
    if (current().is_operator("(")) {
      arguments(node);
    } else if (kind == TokenKind::kString || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
               current().is_operator("[") || current().is_operator("{") ||
               (kind == TokenKind::kName && !current().is_name("else") && !current().is_name("or") &&
                !current().is_name("and"))) {
      if (current().is_name("is")) expected("no second test; write 'and' between tests");
      const Nesting nesting(*this);
      node->items.push_back(postfix(primary()));
    }
    return negated ? make(ExprKind::kNot, line, node) : node;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  Ast ast_;
  std::optional<Error> error_;
  std::string end_tag_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

Result<Ast> parse_template(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return fail(ErrorKind::kInvalidInput, "line 1: a template of {} bytes, expected at most {}", source.size(),
                kMaxTemplateBytes);
  }
  auto tokens = tokenize(source);
  if (!tokens.ok()) return tokens.error();
  return Parser(std::move(*tokens)).run();
}

}  // namespace latte::jinja
