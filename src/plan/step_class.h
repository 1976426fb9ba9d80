#pragma once

namespace latte {

/// Why a step runs: to read a prompt, or to produce and verify generated tokens.
enum class Role { kPrompt, kGenerated };

/// The numeric family of a step (design/numerics.md). Decode-class rows do not see each other: the bits of a row depend
/// on its own inputs and the cache alone. Prompt-class rows may also depend on how the prompt was cut into steps.
enum class StepClass { kDecode, kPrompt };

/// Most rows of one sequence that a decode-class step may hold.
inline constexpr int kMaxDecodeRows = 16;

constexpr StepClass step_class(Role role, int new_rows) {
  return role == Role::kGenerated && new_rows <= kMaxDecodeRows ? StepClass::kDecode : StepClass::kPrompt;
}

}  // namespace latte
