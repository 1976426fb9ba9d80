#pragma once

#include "latte/engine.h"

namespace latte {

/// The way from the public handle to what it holds, for the tools of this folder.
struct EngineAccess {
  static const std::shared_ptr<OpenModel>& model(const Engine& engine) { return engine.model_; }
};

}  // namespace latte
