#pragma once

#include "attention/mla_step.h"

namespace latte {

/// out = attention over the latent rows: one lane, every head's rows packed, keys of width r + p, values their first r
/// columns.
void attend_absorbed(const MlaStepArgs& args);

/// out = attention over keys and values expanded from the latent rows, a lane per head, chunk by chunk in a bounded
/// workspace.
void attend_materialised(const MlaStepArgs& args);

}  // namespace latte
