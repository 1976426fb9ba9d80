#pragma once

#include <cstdint>

#include "plan/choose_form.h"

namespace latte {

/// Which path the work really took: counted where it is launched, once a step, so that a benchmark cannot claim
/// another.
struct PathCounters {
  std::int64_t absorbed_steps = 0;
  std::int64_t absorbed_rows = 0;
  std::int64_t materialised_steps = 0;
  std::int64_t materialised_rows = 0;
  std::int64_t gqa_steps = 0;
  std::int64_t gqa_rows = 0;

  void count(MlaForm form, int rows) {
    if (form == MlaForm::kAbsorbed) {
      ++absorbed_steps;
      absorbed_rows += rows;
    } else if (form == MlaForm::kMaterialised) {
      ++materialised_steps;
      materialised_rows += rows;
    } else {
      ++gqa_steps;
      gqa_rows += rows;
    }
  }
};

}  // namespace latte
