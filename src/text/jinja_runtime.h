#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/error.h"
#include "text/jinja_ast.h"
#include "text/jinja_value.h"

namespace latte::jinja {

/// What one run of a template may use. A template comes with a model, so it is not to be trusted; these bounds are far
/// above what a long conversation needs and end a hostile template within seconds.
inline constexpr std::size_t kMaxOutputBytes = std::size_t{64} << 20;
inline constexpr std::size_t kMaxWork = std::size_t{1}
                                        << 30;         ///< bytes made and looked at, plus a fixed price per node
inline constexpr std::size_t kWorkPerNode = 128;       ///< price of evaluating one node of the template
inline constexpr std::size_t kWorkPerElement = 256;    ///< price of putting one value into a list or dict
inline constexpr std::size_t kWorkPerComparison = 4;   ///< price of looking at one name, key or element
inline constexpr int kMaxCallDepth = 400;              ///< nested evaluations
inline constexpr int kMaxValueDepth = 150;             ///< nested lists and dicts
inline constexpr std::size_t kMaxObjects = 1'000'000;  ///< namespaces, macros and loops

/// Names and their values; a body looks into its own first, then outward.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> names;

  // The names looked at count against the budget.
  void set(Runtime& runtime, std::string_view name, Value value);
  /// The value, or null when neither this scope nor an outer one has the name.
  const Value* find(Runtime& runtime, std::string_view name) const;
};

/// A macro with the scope that its body looks into.
struct Macro {
  const Statement* definition = nullptr;
  std::shared_ptr<Scope> scope;
};

/// The state behind the name `loop`.
struct Loop {
  std::shared_ptr<const List> items;
  std::size_t index = 0;
  int depth = 0;
  const Statement* statement = nullptr;  ///< of a recursive loop, else null
  std::shared_ptr<Scope> scope;          ///< around the statement
  std::vector<Value> last_changed;       ///< arguments of the last loop.changed(), cut off from the loop itself
  bool has_changed = false;
};

/// Arguments of a call, a filter or a test.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  /// The argument at a place or of a name, or null.
  const Value* find(std::size_t index, std::string_view name) const;
};

/// The state of one run: its budget, its first error, and the objects that values point to. After the first error every
/// operation does nothing and gives an undefined value; loops ask `failed()`.
class Runtime {
 public:
  explicit Runtime(std::time_t now) : now_(now) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  std::time_t now() const { return now_; }

  /// Records the first error at the current line; returns an undefined value for the caller to pass on.
  Value refuse(std::string_view message);

  void set_line(int line) { line_ = line; }

  /// Takes work from the budget; false (and an error) when it is used up.
  bool charge(std::size_t work);

  /// Adds a part to a text that grows. False (and an error) instead when the budget is used up or the text would exceed
  /// kMaxOutputBytes.
  bool append(std::string& text, std::string_view part);

  Value make_string(std::string text);
  Value make_list(std::vector<Value> items, bool is_tuple = false);
  Value make_dict(Dict dict);
  // Null when there are too many already.
  Namespace* make_namespace();
  const Macro* make_macro(Macro macro);
  Loop* make_loop(Loop loop);

 private:
  bool room_for_object();

  std::optional<Error> error_;
  std::time_t now_;
  int line_ = 1;
  std::size_t work_ = 0;
  std::deque<Namespace> namespaces_;
  std::deque<Macro> macros_;
  std::deque<Loop> loops_;
};

}  // namespace latte::jinja
