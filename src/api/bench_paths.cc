#include "api/bench_paths.h"

#include "base/fail.h"

namespace latte {
namespace {

constexpr std::int64_t PathCounts::*kFields[] = {&PathCounts::absorbed_steps,     &PathCounts::absorbed_rows,
                                                 &PathCounts::materialised_steps, &PathCounts::materialised_rows,
                                                 &PathCounts::gqa_steps,          &PathCounts::gqa_rows};

MlaForm form_of(const ModelConfig& config, const FormRule& rule, Role role, const BenchStep& step) {
  if (config.attention == AttentionKind::kGqa) return MlaForm::kGqa;
  return choose_form(config.geometry, {step.rows, std::int64_t{step.rows_before} + step.rows, role}, rule);
}

std::string words(const PathCounts& paths) {
  return fmt::format("absorbed {} ({} rows), materialised {} ({}), gqa {} ({})", paths.absorbed_steps,
                     paths.absorbed_rows, paths.materialised_steps, paths.materialised_rows, paths.gqa_steps,
                     paths.gqa_rows);
}

Error contradiction(std::string_view test, const std::string& claimed, const PathCounts& counted) {
  return fail(ErrorKind::kInvalidInput,
              "[bench] {}: the steps took {}, expected {}: the row would not measure what its name says, please report "
              "it",
              test, words(counted), claimed);
}

}  // namespace

PathCounts path_counts(const PathCounters& counters) {
  return {.absorbed_steps = counters.absorbed_steps,
          .absorbed_rows = counters.absorbed_rows,
          .materialised_steps = counters.materialised_steps,
          .materialised_rows = counters.materialised_rows,
          .gqa_steps = counters.gqa_steps,
          .gqa_rows = counters.gqa_rows};
}

PathCounts claimed_paths(const ModelConfig& config, const FormRule& rule, Role role,
                         const std::vector<BenchStep>& steps) {
  PathCounters counters;
  for (const BenchStep& step : steps) counters.count(form_of(config, rule, role, step), step.rows);
  return path_counts(counters);
}

std::string forms_of(const PathCounts& paths) {
  std::string text;
  const auto add = [&](std::int64_t steps, const char* form) {
    if (steps > 0) text += (text.empty() ? "" : "+") + std::string(form);
  };
  add(paths.absorbed_steps, "absorbed");
  add(paths.materialised_steps, "materialised");
  add(paths.gqa_steps, "gqa");
  return text;
}

Status check_paths(std::string_view test, const PathCounts& claimed, std::int64_t samples, const PathCounts& counted) {
  for (const auto field : kFields) {
    if (counted.*field == claimed.*field * samples) continue;
    return contradiction(test, fmt::format("{} in each of {} samples", words(claimed), samples), counted);
  }
  return {};
}

Status check_forms(std::string_view test, const PathCounts& claimed, const PathCounts& counted) {
  for (const auto field : kFields) {
    if ((counted.*field > 0) != (claimed.*field > 0))
      return contradiction(test, forms_of(claimed) + " steps alone", counted);
  }
  return {};
}

PathCounts operator+(const PathCounts& a, const PathCounts& b) {
  PathCounts sum;
  for (const auto field : kFields) sum.*field = a.*field + b.*field;
  return sum;
}

PathCounts operator-(const PathCounts& a, const PathCounts& b) {
  PathCounts difference;
  for (const auto field : kFields) difference.*field = a.*field - b.*field;
  return difference;
}

}  // namespace latte
