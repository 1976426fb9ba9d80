#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja_value.h"

namespace latte::jinja {

enum class ExprKind {
  kConstant,     ///< value
  kName,         ///< name
  kList,         ///< items
  kTuple,        ///< items
  kDict,         ///< items: key, value, key, value, ...
  kAttribute,    ///< base.name
  kItem,         ///< base[items[0]]
  kSlice,        ///< base[items[0]:items[1]:items[2]], null where left out
  kCall,         ///< base(items, named)
  kFilter,       ///< base | name(items, named); base is null at the head of a filter block
  kTest,         ///< base is name(items, named)
  kNegate,       ///< -base
  kPlus,         ///< +base
  kNot,          ///< not base
  kAnd,          ///< base and items[0]
  kOr,           ///< base or items[0]
  kBinary,       ///< base name items[0], name one of + - * / // % **
  kConcat,       ///< items joined by ~
  kCompare,      ///< base operators[0] items[0] operators[1] items[1] ...
  kConditional,  ///< items[0] if base else items[1] (null when left out)
};

/// A node of an expression. The tree is owned by `Ast`; children are borrowed from it.
struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 1;
  std::string name;
  Value value;
  const Expr* base = nullptr;
  std::vector<const Expr*> items;
  std::vector<std::pair<std::string, const Expr*>> named;
  std::vector<std::string> operators;
};

struct Statement;
using Body = std::vector<const Statement*>;

enum class StatementKind {
  kText,         ///< text
  kOutput,       ///< {{ expr }}
  kIf,           ///< branches in order; a null condition is the else
  kFor,          ///< for target in expr if filter: body, else_body
  kSet,          ///< set target = expr
  kSetBlock,     ///< set target: body, through filter when given
  kMacro,        ///< macro name(parameters): body
  kCallBlock,    ///< call(parameters) expr: body
  kFilterBlock,  ///< filter expr: body
  kWith,         ///< with targets = values: body
  kScope,        ///< a body with names of its own
  kBreak,
  kContinue,
};

struct Branch {
  const Expr* condition = nullptr;
  Body body;
};

/// A parameter of a macro with its default, null when it has none.
struct Parameter {
  std::string name;
  const Expr* fallback = nullptr;
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 1;
  std::string text;  ///< text, or the name of a macro
  const Expr* target = nullptr;
  const Expr* expr = nullptr;
  const Expr* filter = nullptr;
  bool recursive = false;
  bool takes_extra_positional = false;  ///< the macro's body speaks of varargs
  bool takes_extra_named = false;       ///< ... of kwargs
  bool takes_caller = false;            ///< ... of caller
  std::vector<Branch> branches;
  std::vector<Parameter> parameters;
  std::vector<std::pair<const Expr*, const Expr*>> bindings;  ///< of with
  Body body;
  Body else_body;
};

/// A parsed template. Nodes live in two flat stores, so that no tree, however deep, is freed by recursion.
struct Ast {
  Ast() = default;
  Ast(Ast&&) = default;
  Ast& operator=(Ast&&) = default;
  Ast(const Ast&) = delete;  // nodes point to each other
  Ast& operator=(const Ast&) = delete;

  std::deque<Expr> expressions;
  std::deque<Statement> statements;
  Body body;
};

}  // namespace latte::jinja
