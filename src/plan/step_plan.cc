#include "plan/step_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/contract.h"

namespace latte {
namespace {

// Partial results a call may keep before it folds groups of leaves on the way.
constexpr std::int64_t kPartialValuesPerCall = 1 << 20;

// What one query brings into a call: values of its packed rows, and of their results.
struct QuerySize {
  std::int64_t packed = 0;
  std::int64_t result = 0;
};

QuerySize query_size(const StepPlan& plan) {
  if (plan.form == MlaForm::kGqa) return {plan.gqa.query_width(), plan.gqa.query_width()};
  const MlaGeometry& g = plan.geometry;
  return {std::int64_t{g.heads} * g.latent_width(), std::int64_t{g.heads} * g.r};
}

int slots_that_fit(const StepPlan& plan, int queries) {
  const std::int64_t values_per_slot = queries * query_size(plan).result;
  return static_cast<int>(
      std::max<std::int64_t>(1, kPartialValuesPerCall / std::max<std::int64_t>(1, values_per_slot)));
}

// Decode-class rows are split by their own length class, so that a row meets the same leaves in every step it may be
// part of.
void plan_cached_rows_decode(StepPlan& plan) {
  plan.runs.clear();
  split_by_length_class(plan.rows_before + 1, plan.new_rows, plan.runs);
  for (const QueryRun& run : plan.runs) {
    const int visible = plan.rows_before + run.first_query + run.query_count;
    const int first_chunk = static_cast<int>(plan.chunks.size());
    const int slots = split_keys(visible, leaf_length(visible), 0, slots_that_fit(plan, run.query_count), plan.chunks);
    plan.calls.push_back({run, first_chunk, static_cast<int>(plan.chunks.size()) - first_chunk, slots});
  }
}

// Prompt-class rows go in blocks that bound the workspace; the step's final length sets the leaves.
void plan_cached_rows_prompt(StepPlan& plan) {
  const int block = static_cast<int>(std::max<std::int64_t>(1, kPackedValuesPerCall / query_size(plan).packed));
  const int leaf = leaf_length(plan.rows_after());
  for (int first = 0; first < plan.new_rows; first += block) {
    const QueryRun run{first, std::min(block, plan.new_rows - first)};
    const int first_chunk = static_cast<int>(plan.chunks.size());
    const int visible = plan.rows_before + run.first_query + run.query_count;
    const int slots = split_keys(visible, leaf, 0, slots_that_fit(plan, run.query_count), plan.chunks);
    plan.calls.push_back({run, first_chunk, static_cast<int>(plan.chunks.size()) - first_chunk, slots});
  }
}

// Attention to the cached rows themselves: absorbed or GQA.
void plan_cached_rows(StepPlan& plan) {
  if (plan.step_class == StepClass::kDecode) {
    plan_cached_rows_decode(plan);
  } else {
    plan_cached_rows_prompt(plan);
  }
}

// Expanded chunks are attended as they come and fold into one slot.
void plan_materialised(StepPlan& plan) {
  for (int begin = 0; begin < plan.rows_after(); begin += kExpandRows) {
    plan.chunks.push_back({0, begin, std::min(begin + kExpandRows, plan.rows_after()), 0, begin == 0});
  }
  plan.calls.push_back({{0, plan.new_rows}, 0, static_cast<int>(plan.chunks.size()), 1});
}

void begin_plan(int rows_before, int new_rows, Role role, const FormRule& rule, StepPlan& plan) {
  expects(new_rows >= 1 && rows_before >= 0, "a step has at least one row");
  plan.role = role;
  plan.step_class = step_class(role, new_rows);
  plan.rule = rule;
  plan.new_rows = new_rows;
  plan.rows_before = rows_before;
  plan.calls.clear();
  plan.chunks.clear();
}

}  // namespace

int StepPlan::max_call_queries() const {
  int most = 0;
  for (const AttendCall& call : calls) most = std::max(most, call.queries.query_count);
  return most;
}

int StepPlan::max_slots() const {
  int most = 0;
  for (const AttendCall& call : calls) most = std::max(most, call.slots);
  return most;
}

void plan_step(const MlaGeometry& geometry, int rows_before, int new_rows, Role role, const FormRule& rule,
               StepPlan& plan) {
  begin_plan(rows_before, new_rows, role, rule, plan);
  plan.geometry = geometry;
  plan.gqa = {};
  plan.form = choose_form(geometry, {new_rows, rows_before + new_rows, role}, rule);
  if (plan.form == MlaForm::kMaterialised) {
    plan_materialised(plan);
  } else {
    plan_cached_rows(plan);
  }
}

void plan_step(const GqaGeometry& geometry, int rows_before, int new_rows, Role role, StepPlan& plan) {
  begin_plan(rows_before, new_rows, role, MlaPath::kAuto, plan);
  plan.geometry = {};
  plan.gqa = geometry;
  plan.form = MlaForm::kGqa;
  plan_cached_rows(plan);
}

std::string explain(const StepPlan& plan) {
  const std::string why =
      plan.form == MlaForm::kGqa
          ? fmt::format("gqa: {} query heads read {} cached keys and values a row", plan.gqa.heads, plan.gqa.kv_heads)
          : explain_form(plan.geometry, {plan.new_rows, plan.rows_after(), plan.role}, plan.rule);
  return fmt::format("{}; {} attention {}, {} key {} of at most {} rows, {} partial {} at most", why, plan.calls.size(),
                     plan.calls.size() == 1 ? "call" : "calls", plan.chunks.size(),
                     plan.chunks.size() == 1 ? "chunk" : "chunks",
                     plan.chunks.empty() ? 0 : plan.chunks.front().end - plan.chunks.front().begin, plan.max_slots(),
                     plan.max_slots() == 1 ? "slot" : "slots");
}

}  // namespace latte
