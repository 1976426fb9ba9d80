#pragma once

#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "latte/error.h"
#include "text/jinja_ast.h"

namespace latte::jinja {

/// What a template is rendered with.
struct RenderInput {
  std::vector<std::pair<std::string, Value>> names;  ///< the outermost names; later ones win
  std::time_t now = 0;                               ///< what strftime_now tells, in local time
};

/// Renders a template as Jinja's immutable sandbox does. Bounded in work, output and depth (see jinja_runtime.h).
/// Errors: "line N: ..." with what the template did; a message of its own raise_exception is quoted.
Result<std::string> render(const Ast& ast, const RenderInput& input);

}  // namespace latte::jinja
