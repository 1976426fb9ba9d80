#include "decode/session.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "decode/draft_model_drafter.h"
#include "decode/lookup_drafter.h"
#include "decode/run_record.h"
#include "decode/run_report.h"
#include "decode/run_settings.h"
#include "decode/teacher_forcing.h"

namespace latte {
namespace {

constexpr int kMaxMtpDepth = 8;

/// The drafter that the options and the model agree on.
Result<SpecType> choose_spec(const OpenModel& model, SpecType asked) {
  if (asked == SpecType::kMtp && !model.info.has_mtp) {
    return fail(ErrorKind::kUnsupported,
                "[speculation] mtp asked of {}, which has no MTP layer ({}): use lookup, draft with -md, or none",
                model.info.model_directory, model.model.weights.report.mtp_reason);
  }
  if (asked == SpecType::kDraft && !model.info.has_draft_model) {
    return fail(ErrorKind::kInvalidInput,
                "[speculation] draft asked without a draft model, expected one: give -md DIR");
  }
  if (asked != SpecType::kAuto) return asked;
  if (model.info.has_draft_model) return SpecType::kDraft;
  return model.info.has_mtp ? SpecType::kMtp : SpecType::kLookup;
}

/// Most drafts per round; an explicit number is taken as it is or refused.
Result<int> choose_depth(SpecType spec, std::optional<int> asked) {
  if (spec == SpecType::kNone) return 0;
  if (!asked.has_value()) return spec == SpecType::kMtp ? 4 : 8;
  const int most = spec == SpecType::kMtp ? kMaxMtpDepth : kMaxDrafts;
  if (*asked < 0 || *asked > most) {
    return fail(ErrorKind::kInvalidInput, "[speculation] {} drafts per round, expected 0 to {} for {}: choose fewer",
                *asked, most, word(spec));
  }
  return *asked;
}

const char* finish_word(FinishReason reason) {
  return reason == FinishReason::kStop ? "stop" : reason == FinishReason::kLength ? "length" : "cancelled";
}

PathCounts difference(const PathCounters& now, const PathCounters& before) {
  return {.absorbed_steps = now.absorbed_steps - before.absorbed_steps,
          .absorbed_rows = now.absorbed_rows - before.absorbed_rows,
          .materialised_steps = now.materialised_steps - before.materialised_steps,
          .materialised_rows = now.materialised_rows - before.materialised_rows,
          .gqa_steps = now.gqa_steps - before.gqa_steps,
          .gqa_rows = now.gqa_rows - before.gqa_rows};
}

}  // namespace

SessionState::SessionState(std::shared_ptr<OpenModel> opened, SpecType chosen, int most_drafts)
    : model(std::move(opened)),
      spec(chosen),
      depth(most_drafts),
      sequence(model->model, *model->backend, model->sequence) {
  switch (spec) {
    case SpecType::kMtp:
      mtp_sequence.emplace(model->model, *model->backend, model->sequence, sequence.scratch());
      drafter = std::make_unique<MtpDrafter>(*mtp_sequence);
      mtp_drafter = static_cast<MtpDrafter*>(drafter.get());
      break;
    case SpecType::kDraft:
      draft_sequence.emplace(*model->draft, *model->backend, model->draft_sequence);
      drafter = std::make_unique<DraftModelDrafter>(*draft_sequence);
      draft_drafter = static_cast<DraftModelDrafter*>(drafter.get());
      break;
    case SpecType::kLookup:
      drafter = std::make_unique<LookupDrafter>();
      break;
    case SpecType::kNone:
    case SpecType::kAuto:
      break;
  }
}

Result<std::unique_ptr<SessionState>> SessionState::open(std::shared_ptr<OpenModel> model,
                                                         const SessionOptions& options) {
  const Result<SpecType> spec = choose_spec(*model, options.spec);
  if (!spec.ok()) return spec.error();
  const Result<int> depth = choose_depth(*spec, options.num_draft_tokens);
  if (!depth.ok()) return depth.error();
  auto opened = std::unique_ptr<SessionState>(new SessionState(std::move(model), *spec, *depth));
  const bool measured = *spec == SpecType::kMtp || *spec == SpecType::kDraft;
  if (measured && !options.num_draft_tokens.has_value()) opened->control.emplace(*depth);
  return opened;
}

/// Under pinned numerics only whole steps of prompt rows stay: what is fed again is cut as a cold prompt would be.
Status SessionState::keep_common_prefix(std::span<const TokenId> prompt) {
  const std::size_t cached = static_cast<std::size_t>(sequence.length());
  const std::size_t bound = std::min(cached, prompt.size());
  const auto [mine, theirs] =
      std::mismatch(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(bound), prompt.begin());
  const int common = std::min(static_cast<int>(mine - tokens.begin()), static_cast<int>(prompt.size()) - 1);
  if (!model->pinned()) return cut_to(common);
  const int as_prompt = std::min(common, generated_from);
  return cut_to(as_prompt - as_prompt % kPinnedStepRows);
}

Status SessionState::check_prompt(std::span<const TokenId> prompt) const {
  if (prompt.empty())
    return fail(ErrorKind::kInvalidInput, "[generate] the prompt has 0 tokens, expected at least one");
  if (prompt.size() <= static_cast<std::size_t>(sequence.context())) return {};
  return fail(ErrorKind::kInvalidInput,
              "[generate] the prompt has {} tokens, expected at most {}, the context: shorten it or raise --ctx-size",
              prompt.size(), sequence.context());
}

/// Makes `prompt` this session's text: what the caches hold of it stays. Gives where rows begin that were generated
/// earlier and are fed as such again, -1 for nowhere: a prompt that lies within what the session holds goes on from it,
/// but under pinned numerics, where it is a prompt like any other.
Result<int> SessionState::begin_with(std::span<const TokenId> prompt) {
  const bool continues =
      !model->pinned() && prompt.size() <= tokens.size() && std::equal(prompt.begin(), prompt.end(), tokens.begin());
  const int first_generated = continues && generated_from < static_cast<int>(prompt.size()) ? generated_from : -1;
  if (Status kept = keep_common_prefix(prompt); !kept.ok()) return kept.error();
  tokens.assign(prompt.begin(), prompt.end());
  generated_from = first_generated >= 0 ? first_generated : static_cast<int>(prompt.size());
  return first_generated;
}

Result<GenerateResult> SessionState::run(std::span<const TokenId> given, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  const std::lock_guard<std::mutex> turn(model->busy);
  GenerateResult result;
  const std::vector<TokenId>& prompt = result.prompt_ids;
  result.prompt_ids.assign(given.begin(), given.end());  // they may be this session's own tokens, which grow
  if (Status fits = check_prompt(prompt); !fits.ok()) return fits.error();
  const Result<RunSettings> settings = settle_run(*model, options);
  if (!settings.ok()) return settings.error();
  const Result<int> first_generated = begin_with(prompt);
  if (!first_generated.ok()) return first_generated.error();

  const Sampler sampler(settings->sampling, sequence.vocab());
  RunRecord record(model->tokenizer(), prompt, options, on_token);
  const PathCounters before = sequence.paths();
  const Result<Generation> done = latte::generate(
      {.target = sequence,
       .drafter = drafter.get(),
       .sampler = sampler,
       .rules = settings->rules,
       .tokens = tokens,
       .options = {.max_tokens = options.max_tokens.value_or(-1),
                   .depth = depth,
                   .control = control.has_value() ? &*control : nullptr,
                   .stop_ids = settings->stop_ids,
                   .prompt_step_rows = model->pinned() ? kPinnedStepRows : GenerateOptions{}.prompt_step_rows,
                   .first_generated = *first_generated},
       .on_token = [&](const Emission& emission) { return record.take(emission); },
       .on_prompt_rows =
           [&](int rows, int all) { return !on_prompt || on_prompt(rows, all) ? Proceed::kGoOn : Proceed::kCancel; }});
  if (!done.ok()) return done.error();
  record.finish(tokens.back());

  record.move_to(result);
  result.ids.assign(tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end());
  result.finish_reason = record.stopped() ? "stop" : finish_word(done->finish_reason);
  result.seed = settings->sampling.seed;
  result.spec_type = word(spec);
  result.paths = difference(sequence.paths(), before);
  report_stats(done->stats, result);
  report_machine(model->info, result);
  return result;
}

Status SessionState::logits(std::span<const TokenId> given, const LogitsOptions& options, const LogitsSink& on_main,
                            const LogitsSink& on_mtp) {
  const std::lock_guard<std::mutex> turn(model->busy);
  const std::vector<TokenId> ids(given.begin(), given.end());  // they may be this session's own tokens
  if (on_mtp && !model->info.has_mtp) {
    return fail(ErrorKind::kUnsupported, "[logits] MTP logits asked of {}, which has no MTP layer ({})",
                model->info.model_directory, model->model.weights.report.mtp_reason);
  }
  if (Status emptied = cut_to(0); !emptied.ok()) return emptied;
  std::optional<MtpSequence> mtp;
  if (on_mtp) mtp.emplace(model->model, *model->backend, model->sequence, sequence.scratch());
  const Status done = evaluate({.main = sequence,
                                .mtp = mtp.has_value() ? &*mtp : nullptr,
                                .ids = ids,
                                .options = options,
                                .step_rows = model->pinned() ? kPinnedStepRows : 0,
                                .on_main = on_main,
                                .on_mtp = on_mtp});
  tokens.assign(ids.begin(), ids.begin() + sequence.length());
  generated_from = model->pinned() ? 0 : sequence.length();  // the caller chose steps and roles
  return done;
}

Status SessionState::rewind_to(int length) {
  const std::lock_guard<std::mutex> turn(model->busy);
  return cut_to(length);
}

/// rewind_to for who holds the device already.
Status SessionState::cut_to(int length) {
  if (!sequence.can_rewind_to(length)) {
    return fail(ErrorKind::kInvalidInput, "[session] rewind to {} tokens of {}, expected a length the cache holds",
                length, sequence.length());
  }
  if (Status rewound = sequence.rewind_to(length); !rewound.ok()) return rewound;
  tokens.resize(static_cast<std::size_t>(length));
  generated_from = std::min(generated_from, length);
  return drafter == nullptr ? Status{} : drafter->rewind_to(length);
}

PathCounts SessionState::paths() const { return difference(sequence.paths(), {}); }

void SessionState::watch_steps(StepCallback on_step) {
  if (!on_step) return sequence.watch_plans({});
  sequence.watch_plans([tell = std::move(on_step)](const StepPlan& plan) {
    tell({.role = plan.role == Role::kPrompt ? "prompt" : "generated",
          .form = form_name(plan.form),
          .rows = plan.new_rows,
          .cached = plan.rows_after(),
          .reason = explain(plan)});
  });
}

}  // namespace latte
