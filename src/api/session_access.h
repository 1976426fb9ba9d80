#pragma once

#include "decode/session.h"
#include "latte/session.h"

namespace latte {

/// The way from the public handle to what it holds, for this folder and for programs that compare caches bit by bit.
struct SessionAccess {
  static SessionState& state(Session& session) { return *session.state_; }
};

}  // namespace latte
