#pragma once

#include <string>
#include <vector>

#include "plan/choose_form.h"
#include "plan/split_kv.h"

namespace latte {

/// One attention call of a step: a run of queries with the chunks they attend to.
struct AttendCall {
  QueryRun queries;
  int first_chunk = 0;
  int chunk_count = 0;
  int slots = 0;
};

/// Everything about a step that arithmetic can decide: made once a step, read by every layer, printable.
struct StepPlan {
  MlaGeometry geometry;  ///< of latent attention
  GqaGeometry gqa;       ///< of grouped-query attention, where the form is that
  Role role = Role::kPrompt;
  StepClass step_class = StepClass::kPrompt;
  FormRule rule;
  MlaForm form = MlaForm::kAbsorbed;
  int new_rows = 0;     ///< L
  int rows_before = 0;  ///< cached rows before this step's append
  std::vector<AttendCall> calls;
  std::vector<KvChunk> chunks;
  std::vector<QueryRun> runs;  ///< scratch of the planner

  int rows_after() const { return rows_before + new_rows; }
  int max_call_queries() const;
  int max_slots() const;
};

/// Latent rows that the materialised form expands at a time.
inline constexpr int kExpandRows = 256;

/// Rows of a prompt step under pinned numerics, whose steps begin at multiples of it.
inline constexpr int kPinnedStepRows = kExpandRows;

/// Packed values (rows x key width) that one absorbed or GQA call of a prompt-class step may hold: bounds the
/// workspace.
inline constexpr std::int64_t kPackedValuesPerCall = 1 << 20;

/// Plans a step of `new_rows` rows on top of `rows_before`. Reuses the plan's memory.
void plan_step(const MlaGeometry& geometry, int rows_before, int new_rows, Role role, const FormRule& rule,
               StepPlan& plan);

/// The same for grouped-query attention, whose keys are divided by the same rule: no form to choose.
void plan_step(const GqaGeometry& geometry, int rows_before, int new_rows, Role role, StepPlan& plan);

/// The plan in one line: form, reason, calls, chunks.
std::string explain(const StepPlan& plan);

}  // namespace latte
