#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/cost_profile.h"
#include "plan/geometry.h"
#include "plan/step_class.h"

namespace latte {

/// The two equal forms of Multi-head Latent Attention (spec: DeepSeek-V2, section 2.1), and what a model without a
/// latent does, where there is nothing to choose.
enum class MlaForm {
  kAbsorbed,      ///< attend to the latent rows; queries and contexts go through W_UK and W_UV
  kMaterialised,  ///< expand the latent rows to keys and values first
  kGqa,           ///< keys and values are what is cached
};

constexpr const char* form_name(MlaForm form) {
  return form == MlaForm::kAbsorbed ? "absorbed" : form == MlaForm::kMaterialised ? "materialised" : "gqa";
}

/// What a step looks like to the choice of form: L new rows of one sequence, T cached rows after this step's append (T
/// >= L).
struct StepShape {
  std::int64_t new_rows = 1;
  std::int64_t rows_after_append = 1;
  Role role = Role::kPrompt;
};

/// What decides between the forms: auto is the rule below, with a profile where there is one; formula is the rule
/// without it; the forced forms are diagnostics; pinned materialises every prompt-class step, so that a prompt row's
/// bits do not hang on how many rows are new.
enum class MlaPath { kAuto, kAbsorbed, kMaterialised, kFormula, kPinned };

/// A path, and for kAuto the costs measured on this machine.
struct FormRule {
  MlaPath path = MlaPath::kAuto;
  const CostProfile* profile = nullptr;  ///< null: arithmetic alone. Whoever keeps the rule keeps the profile

  constexpr FormRule() = default;
  constexpr FormRule(MlaPath p) : path(p) {}  // NOLINT: a path alone is a rule
  constexpr FormRule(MlaPath p, const CostProfile* costs) : path(p), profile(costs) {}
};

__extension__ using WideInt = __int128;

/// Multiply-adds per head of a step, without the rope part of the scores, which both forms share.
constexpr WideInt absorbed_macs(const MlaGeometry& g, StepShape step) {
  return WideInt{step.new_rows} * g.r * g.expanded_width() + WideInt{2} * step.new_rows * step.rows_after_append * g.r;
}
constexpr WideInt materialised_macs(const MlaGeometry& g, StepShape step) {
  return WideInt{step.rows_after_append} * g.r * g.expanded_width() +
         WideInt{step.new_rows} * step.rows_after_append * g.expanded_width();
}

/// Whether the absorbed form does strictly less arithmetic, exactly: L * (r*d + T*(2r-d)) < T*r*d.
constexpr bool absorbed_is_cheaper(const MlaGeometry& g, StepShape step) {
  return absorbed_macs(g, step) < materialised_macs(g, step);
}

/// The form of a step, by arithmetic alone. One row is absorbed before any formula, and generated rows always are (one
/// numeric family per role); a tie materialises.
constexpr MlaForm choose_form(const MlaGeometry& g, StepShape step) {
  if (step.new_rows <= 1) return MlaForm::kAbsorbed;
  if (step.role == Role::kGenerated && step.new_rows <= kMaxDecodeRows) return MlaForm::kAbsorbed;
  return absorbed_is_cheaper(g, step) ? MlaForm::kAbsorbed : MlaForm::kMaterialised;
}

/// Whether a rule asks its profile about a step: prompt-class steps of more than one row under kAuto.
constexpr bool profile_decides(StepShape step, const FormRule& rule) {
  return rule.path == MlaPath::kAuto && rule.profile != nullptr && step.new_rows > 1 &&
         step_class(step.role, static_cast<int>(step.new_rows)) == StepClass::kPrompt;
}

/// The form of a step by measured costs: the formula's, unless the profile expects the other to be faster by more than
/// kProfileMargin.
constexpr MlaForm choose_form(const MlaGeometry& g, StepShape step, const CostProfile& profile) {
  const MlaForm formula = choose_form(g, step);
  const double absorbed = absorbed_us(profile, step.new_rows, step.rows_after_append);
  const double materialised = materialised_us(profile, step.new_rows, step.rows_after_append);
  if (formula == MlaForm::kAbsorbed)
    return materialised * kProfileMargin < absorbed ? MlaForm::kMaterialised : MlaForm::kAbsorbed;
  return absorbed * kProfileMargin < materialised ? MlaForm::kAbsorbed : MlaForm::kMaterialised;
}

/// The form under a rule.
constexpr MlaForm choose_form(const MlaGeometry& g, StepShape step, const FormRule& rule) {
  if (rule.path == MlaPath::kPinned) {
    const bool decode = step_class(step.role, static_cast<int>(step.new_rows)) == StepClass::kDecode;
    return decode ? MlaForm::kAbsorbed : MlaForm::kMaterialised;
  }
  if (rule.path == MlaPath::kAbsorbed) return MlaForm::kAbsorbed;
  if (rule.path == MlaPath::kMaterialised) return MlaForm::kMaterialised;
  return profile_decides(step, rule) ? choose_form(g, step, *rule.profile) : choose_form(g, step);
}

/// The largest L for which the formula says absorbed at T cached rows, L not bounded by T; nothing when it always does.
constexpr std::optional<std::int64_t> max_absorbed_rows(const MlaGeometry& g, std::int64_t rows_after_append) {
  const WideInt expand = WideInt{rows_after_append} * g.r * g.expanded_width();
  const WideInt divisor =
      WideInt{g.r} * g.expanded_width() + WideInt{rows_after_append} * (2 * g.r - g.expanded_width());
  if (divisor <= 0) return std::nullopt;
  return static_cast<std::int64_t>((expand - 1) / divisor);
}

/// max_absorbed_rows as T grows without bound; nothing when the absorbed form wins for every L.
constexpr std::optional<std::int64_t> absorbed_rows_limit(const MlaGeometry& g) {
  const std::int64_t slope = 2 * std::int64_t{g.r} - g.expanded_width();
  if (slope <= 0) return std::nullopt;
  return (std::int64_t{g.r} * g.expanded_width() - 1) / slope;
}

/// The largest L up to which every prompt step of at most L rows is absorbed at T cached rows, by a profile; nothing
/// when all of L = 1..T are.
std::optional<std::int64_t> max_absorbed_rows(const MlaGeometry& g, std::int64_t rows_after_append,
                                              const CostProfile& profile);

/// Why a step takes its form, in one line with the numbers.
std::string explain_form(const MlaGeometry& g, StepShape step, const FormRule& rule);

}  // namespace latte
