#include "support/teacher_forced.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace latte::test {
namespace {

void put_rows(MatView<const float> logits, std::vector<float>& all, std::int64_t first) {
  const auto end = static_cast<std::size_t>((first + logits.rows) * logits.cols);
  if (all.size() < end) all.resize(end);
  for (std::int64_t i = 0; i < logits.rows; ++i)
    std::copy_n(logits.row(i), logits.cols, all.begin() + (first + i) * logits.cols);
}

// Main model and MTP layer side by side, one step at a time.
class Feeder {
 public:
  Feeder(const Model& model, Backend& backend, std::span<const TokenId> ids, const TeacherForcedRun& run)
      : ids_(ids), main_(model, backend, options_of(ids, run)) {
    if (model.has_mtp()) mtp_ = std::make_unique<MtpSequence>(model, backend, options_of(ids, run), main_.scratch());
  }

  Status feed(int rows, Role role, TeacherForcedLogits& out) {
    const int first = main_.length();
    Result<StepResult> step = main_.step(ids_.subspan(first, rows), role, LogitsWanted::kAll);
    if (!step.ok()) return step.error();
    put_rows(step->logits, out.main, first);
    if (mtp_ == nullptr) return {};
    const int paired = std::min(rows, static_cast<int>(ids_.size()) - 1 - first);
    if (paired == 0) return {};
    Result<StepResult> draft =
        mtp_->step(ids_.subspan(first + 1, paired), step->hidden.rows_from(0, paired), role, LogitsWanted::kAll);
    if (!draft.ok()) return draft.error();
    put_rows(draft->logits, out.mtp, first);
    return {};
  }

  Status rewind(int rows) {
    const int length = main_.length() - rows;
    if (Status done = main_.rewind_to(length); !done.ok()) return done;
    return mtp_ == nullptr ? Status() : mtp_->rewind_to(std::min(length, mtp_->length()));
  }

  const PathCounters& paths() const { return main_.paths(); }

 private:
  static SequenceOptions options_of(std::span<const TokenId> ids, const TeacherForcedRun& run) {
    return {.context = run.context > 0 ? run.context : static_cast<int>(ids.size()),
            .cache_dtype = run.cache_dtype,
            .path = run.path};
  }

  std::span<const TokenId> ids_;
  ModelSequence main_;
  std::unique_ptr<MtpSequence> mtp_;
};

}  // namespace

std::vector<int> parse_steps(const std::string& text) {
  std::vector<int> steps;
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const int rows = static_cast<int>(std::strtol(at, &end, 10));
    int times = 1;
    if (*end == 'x') times = static_cast<int>(std::strtol(end + 1, &end, 10));
    steps.insert(steps.end(), static_cast<std::size_t>(times), rows);
    at = *end == ',' ? end + 1 : end;
  }
  return steps;
}

Result<TeacherForcedLogits> teacher_forced(const Model& model, Backend& backend, std::span<const TokenId> ids,
                                           const TeacherForcedRun& run) {
  Feeder feeder(model, backend, ids, run);
  TeacherForcedLogits out;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const int rows = run.steps[i];
    const Role role = static_cast<int>(i) >= run.role_from && rows <= kMaxDecodeRows ? Role::kGenerated : Role::kPrompt;
    if (Status fed = feeder.feed(rows, role, out); !fed.ok()) return fed.error();
    if (run.redo > 0 && rows > run.redo && static_cast<int>(i) >= run.redo_from) {
      if (Status rewound = feeder.rewind(run.redo); !rewound.ok()) return rewound.error();
      if (Status fed = feeder.feed(run.redo, role, out); !fed.ok()) return fed.error();
    }
  }
  out.paths = feeder.paths();
  return out;
}

Result<std::vector<float>> chained_mtp_logits(const Model& model, Backend& backend, std::span<const TokenId> ids,
                                              DType cache_dtype) {
  const SequenceOptions options{.context = static_cast<int>(ids.size()), .cache_dtype = cache_dtype};
  ModelSequence main(model, backend, options);
  MtpSequence mtp(model, backend, options, main.scratch());
  std::vector<float> all;
  for (std::size_t i = 0; i + 2 < ids.size(); ++i) {
    Result<StepResult> step = main.step(ids.subspan(i, 1), Role::kGenerated, LogitsWanted::kNone);
    if (!step.ok()) return step.error();
    Result<StepResult> first = mtp.step(ids.subspan(i + 1, 1), step->hidden, Role::kGenerated, LogitsWanted::kNone);
    if (!first.ok()) return first.error();
    Result<StepResult> second = mtp.step(ids.subspan(i + 2, 1), first->hidden, Role::kGenerated, LogitsWanted::kLast);
    if (!second.ok()) return second.error();
    put_rows(second->logits, all, static_cast<std::int64_t>(i));
    if (Status rewound = mtp.rewind_to(static_cast<int>(i) + 1); !rewound.ok()) return rewound.error();
  }
  return all;
}

}  // namespace latte::test
