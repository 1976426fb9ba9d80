#pragma once

#include <memory>

#include "backend/backend.h"

namespace latte {

/// The slow path that stays as oracle: every operation of backend.h in double, written to be read. Activations,
/// partials and workspace are F64; weights and cached rows may be F64, F32, BF16 or F16. Memory is the host's.
std::unique_ptr<Backend> make_reference_backend();

}  // namespace latte
