#pragma once

#include <string>

#include "latte/error.h"
#include "latte/report.h"

namespace latte::cli {

/// The crossover over T as an SVG page: below a line steps are absorbed, above it they materialise.
std::string plot_text(const PlanReport& plan);

/// Writes the page to a file. Errors: a model with one form, what the system refuses.
Status write_plot(const PlanReport& plan, const std::string& path);

}  // namespace latte::cli
