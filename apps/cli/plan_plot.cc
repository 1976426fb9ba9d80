#include "plan_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>

#include "svg.h"

namespace latte::cli {
namespace {

constexpr double kLeft = 72, kTop = 64, kWidth = 600, kHeight = 320;
constexpr double kLeastCached = 256, kMostCached = 131072;
constexpr double kLeastPlotted = 1, kMostPlotted = 4096;

double x_of(double cached) {
  return kLeft + kWidth * std::log2(cached / kLeastCached) / std::log2(kMostCached / kLeastCached);
}
double y_of(double rows) {
  const double inside = std::clamp(rows, kLeastPlotted, kMostPlotted);
  return kTop + kHeight * (1 - std::log2(inside / kLeastPlotted) / std::log2(kMostPlotted / kLeastPlotted));
}

std::string number(double value) {
  return value >= 1024 ? fmt::format("{:.0f}K", value / 1024) : fmt::format("{:.0f}", value);
}

std::string axes() {
  std::string text;
  for (double cached = kLeastCached; cached <= kMostCached; cached *= 2) {
    text += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f} v{2:.1f}\" stroke=\"#ddd\"/><text x=\"{0:.1f}\" y=\"{3:.1f}\" "
        "text-anchor=\"middle\">{4}</text>\n",
        x_of(cached), kTop, kHeight, kTop + kHeight + 18, number(cached));
  }
  for (double rows = kLeastPlotted; rows <= kMostPlotted; rows *= 4) {
    text += fmt::format(
        "<path d=\"M{0:.1f} {1:.1f} h{2:.1f}\" stroke=\"#ddd\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5}</text>\n",
        kLeft, y_of(rows), kWidth, kLeft - 8, y_of(rows) + 4, number(rows));
  }
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">cached rows T</text>\n",
                      kLeft + kWidth / 2, kTop + kHeight + 38);
  text += fmt::format(
      "<text x=\"16\" y=\"{0:.1f}\" text-anchor=\"middle\" transform=\"rotate(-90 16 {0:.1f})\">new rows "
      "L</text>\n",
      kTop + kHeight / 2);
  return text;
}

/// A line through the crossovers. Where every L up to T is absorbed it runs along L = T.
std::string line(const PlanReport& plan, std::optional<std::int64_t> CrossoverPoint::*rows, const char* colour,
                 const char* label, int place) {
  std::string path;
  for (const CrossoverPoint& point : plan.curve) {
    const std::int64_t most = std::min((point.*rows).value_or(point.cached), point.cached);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_of(static_cast<double>(point.cached)),
                        y_of(static_cast<double>(most)));
  }
  const double y = kTop + 18 + 20 * place;
  return fmt::format(
      "<path d=\"{0}\" fill=\"none\" stroke=\"{1}\" stroke-width=\"2\"/>\n<path d=\"M{2:.1f} {3:.1f} h24\" "
      "stroke=\"{1}\" stroke-width=\"2\"/><text x=\"{4:.1f}\" y=\"{5:.1f}\">{6}</text>\n",
      path, colour, kLeft + 12, y, kLeft + 44, y + 4, label);
}

}  // namespace

std::string plot_text(const PlanReport& plan) {
  std::string text =
      svg_begin(static_cast<int>(kLeft + kWidth) + 28, static_cast<int>(kTop + kHeight) + 52,
                fmt::format("{}: where a prompt step changes its form", plan.family),
                fmt::format("{} heads, r {}, p {}, n {}, v {}; absorbed below a line, materialised above", plan.heads,
                            plan.r, plan.p, plan.n, plan.v));
  text += axes();
  text += line(plan, &CrossoverPoint::formula_rows, "#4878a8", "formula", 0);
  if (!plan.calibrated.empty())
    text += line(plan, &CrossoverPoint::profile_rows, "#c8553d", "profile of this machine", 1);
  return text + svg_end();
}

Status write_plot(const PlanReport& plan, const std::string& path) {
  if (plan.curve.empty()) {
    return Error{ErrorKind::kUnsupported,
                 fmt::format("--plot {}: {} attention has one form and no crossover, expected a model with latent "
                             "attention",
                             path, plan.attention)};
  }
  const std::string text = plot_text(plan);
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int reason = errno;
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return {};
  return Error{ErrorKind::kIo,
               fmt::format("--plot {}: {}, expected a file that may be written", path, std::strerror(reason))};
}

}  // namespace latte::cli
