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

std::string explain_form(const MlaGeometry& g, StepShape step, MlaPath path) {
  const char* form = form_name(choose_form(g, step, path));
  if (path == MlaPath::kAbsorbed || path == MlaPath::kMaterialised)
    return fmt::format("{}: forced by --mla-path", form);
  if (path == MlaPath::kPinned && choose_form(g, step, path) == MlaForm::kMaterialised)
    return fmt::format("{}: prompt rows are, under --numerics pinned", form);
  if (step.new_rows <= 1) return fmt::format("{}: a single row is absorbed before any formula", form);
  if (step.role == Role::kGenerated && step.new_rows <= kMaxDecodeRows) {
    return fmt::format("{}: {} generated rows keep one numeric family", form, step.new_rows);
  }
  return fmt::format("{}: {} rows over {} cached rows cost {} multiply-adds a head absorbed, {} materialised", form,
                     step.new_rows, step.rows_after_append, decimal(absorbed_macs(g, step)),
                     decimal(materialised_macs(g, step)));
}

}  // namespace latte
