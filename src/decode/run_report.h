#pragma once

#include "decode/decode_stats.h"
#include "latte/engine.h"
#include "latte/session.h"

namespace latte {

/// Fills in what the decoding loop counted and timed.
void report_stats(const DecodeStats& stats, GenerateResult& result);

/// Fills in where it ran, and the process's peak memory.
void report_machine(const EngineInfo& info, GenerateResult& result);

}  // namespace latte
