#include "decode/teacher_forcing.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/fail.h"

namespace latte {
namespace {

class Evaluation {
 public:
  explicit Evaluation(const TeacherForcing& request) : request_(request) {}

  Status run() {
    std::vector<int> steps = request_.options.steps;
    const int total = static_cast<int>(request_.ids.size());
    if (steps.empty()) steps = whole_steps(total);
    const std::int64_t planned = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
    const bool positive = std::all_of(steps.begin(), steps.end(), [](int rows) { return rows > 0; });
    if (total == 0 || !positive || planned != total) {
      return fail(ErrorKind::kInvalidInput,
                  "[logits] steps of {} rows in all for {} ids, expected positive steps that add up to the ids",
                  planned, total);
    }
    const int redo = request_.options.redo;
    if (redo < 0) return fail(ErrorKind::kInvalidInput, "[logits] redo {}, expected 0 or more rows", redo);
    for (const int rows : steps) {
      const int first = request_.main.length();
      const Role role = role_of(first, rows);
      const int again = rows > redo ? redo : 0;
      if (Status fed = feed(first, rows, rows - again, role); !fed.ok()) return fed;
      if (again == 0) continue;
      const int kept = first + rows - again;
      if (Status back = request_.main.rewind_to(kept); !back.ok()) return back;
      if (request_.mtp != nullptr) {
        if (Status back = request_.mtp->rewind_to(std::min(kept, request_.mtp->length())); !back.ok()) return back;
      }
      if (Status fed = feed(kept, again, again, role); !fed.ok()) return fed;
    }
    return {};
  }

 private:
  std::vector<int> whole_steps(int total) const {
    const int most = request_.step_rows > 0 ? request_.step_rows : total;
    std::vector<int> steps;
    for (int left = total; left > 0; left -= most) steps.push_back(std::min(left, most));
    return steps;
  }

  Role role_of(int first, int rows) const {
    if (request_.options.role == StepRole::kPrompt) return Role::kPrompt;
    if (request_.options.role == StepRole::kGenerated) return Role::kGenerated;
    return first == 0 || request_.options.steps.empty() || rows > kMaxDecodeRows ? Role::kPrompt : Role::kGenerated;
  }

  /// Feeds ids [first, first + rows) and hands out the logits of the first `wanted` of them.
  Status feed(int first, int rows, int wanted, Role role) {
    const auto ids = request_.ids.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(rows));
    const LogitsWanted logits = request_.on_main ? LogitsWanted::kAll : LogitsWanted::kNone;
    const Result<StepResult> step = request_.main.step(ids, role, logits);
    if (!step.ok()) return step.error();
    if (Status sent = send(request_.on_main, first, wanted, step->logits); !sent.ok()) return sent;
    if (request_.mtp == nullptr) return {};
    // The last id has no next one, so its row waits for ever.
    const int pairs = std::min(rows, static_cast<int>(request_.ids.size()) - 1 - first);
    if (pairs <= 0) return {};
    const auto next = request_.ids.subspan(static_cast<std::size_t>(first) + 1, static_cast<std::size_t>(pairs));
    const LogitsWanted mtp_logits = request_.on_mtp ? LogitsWanted::kAll : LogitsWanted::kNone;
    const Result<StepResult> mtp = request_.mtp->step(next, step->hidden.rows_from(0, pairs), role, mtp_logits);
    if (!mtp.ok()) return mtp.error();
    return send(request_.on_mtp, first, std::min(wanted, pairs), mtp->logits);
  }

  static Status send(const LogitsSink& sink, int first, int rows, const MatView<const float>& logits) {
    if (!sink || rows == 0) return {};
    return sink(first, {logits.data, static_cast<std::size_t>(rows * logits.cols)});
  }

  const TeacherForcing& request_;
};

}  // namespace

Status evaluate(const TeacherForcing& request) { return Evaluation(request).run(); }

}  // namespace latte
