#include <fmt/format.h>

#include "plan/choose_form.h"

namespace latte {
namespace {

// fmt prints 128-bit integers, but only where the library was built with them.
std::string decimal(WideInt value) {
  std::string digits;
  const bool negative = value < 0;
  do {
    const int digit = static_cast<int>(value % 10);
    digits.insert(digits.begin(), static_cast<char>('0' + (negative ? -digit : digit)));
    value /= 10;
  } while (value != 0);
  return negative ? "-" + digits : digits;
}

}  // namespace

std::string explain_form(const MlaGeometry& g, StepShape step, const FormRule& rule) {
  const MlaForm chosen = choose_form(g, step, rule);
  const char* form = form_name(chosen);
  if (rule.path == MlaPath::kAbsorbed || rule.path == MlaPath::kMaterialised)
    return fmt::format("{}: forced by --mla-path", form);
  if (rule.path == MlaPath::kPinned && chosen == MlaForm::kMaterialised)
    return fmt::format("{}: prompt rows are, under --numerics pinned", form);
  if (step.new_rows <= 1) return fmt::format("{}: a single row is absorbed before any formula", form);
  if (step.role == Role::kGenerated && step.new_rows <= kMaxDecodeRows) {
    return fmt::format("{}: {} generated rows keep one numeric family", form, step.new_rows);
  }
  if (profile_decides(step, rule)) {
    const CostProfile& p = *rule.profile;
    return fmt::format(
        "{}: {} rows over {} cached rows take {:.3g} ms a layer absorbed, {:.3g} materialised, by this machine's "
        "profile "
        "(formula: {})",
        form, step.new_rows, step.rows_after_append, absorbed_us(p, step.new_rows, step.rows_after_append) * 1e-3,
        materialised_us(p, step.new_rows, step.rows_after_append) * 1e-3, form_name(choose_form(g, step)));
  }
  return fmt::format("{}: {} rows over {} cached rows cost {} multiply-adds a head absorbed, {} materialised", form,
                     step.new_rows, step.rows_after_append, decimal(absorbed_macs(g, step)),
                     decimal(materialised_macs(g, step)));
}

std::optional<std::int64_t> max_absorbed_rows(const MlaGeometry& g, std::int64_t rows_after_append,
                                              const CostProfile& profile) {
  for (std::int64_t rows = 2; rows <= rows_after_append; ++rows) {
    const StepShape step{.new_rows = rows, .rows_after_append = rows_after_append, .role = Role::kPrompt};
    if (choose_form(g, step, profile) != MlaForm::kAbsorbed) return rows - 1;
  }
  return std::nullopt;
}

}  // namespace latte
