#include "decode/session.h"

#include <sys/resource.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/fail.h"
#include "decode/draft_model_drafter.h"
#include "decode/lookup_drafter.h"
#include "decode/teacher_forcing.h"
#include "decode/text_output.h"

namespace latte {
namespace {

constexpr int kMaxMtpDepth = 8;

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::uint64_t random_seed() {
  std::random_device device;
  // 53 bits, so that programs which read numbers as doubles can hand the seed back.
  return ((std::uint64_t{device()} << 32) | device()) >> 11;
}

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
  if (!asked.has_value()) return spec == SpecType::kMtp ? 1 : spec == SpecType::kDraft ? 4 : 8;
  const int most = spec == SpecType::kMtp ? kMaxMtpDepth : kMaxDrafts;
  if (*asked < 0 || *asked > most) {
    return fail(ErrorKind::kInvalidInput, "[speculation] {} drafts per round, expected 0 to {} for {}", *asked, most,
                word(spec));
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
          .materialised_rows = now.materialised_rows - before.materialised_rows};
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
  return std::unique_ptr<SessionState>(new SessionState(std::move(model), *spec, *depth));
}

Status SessionState::keep_common_prefix(std::span<const TokenId> prompt) {
  const std::size_t cached = static_cast<std::size_t>(sequence.length());
  const std::size_t bound = std::min(cached, prompt.size());
  const auto [mine, theirs] =
      std::mismatch(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(bound), prompt.begin());
  return cut_to(std::min(static_cast<int>(mine - tokens.begin()), static_cast<int>(prompt.size()) - 1));
}

Result<GenerateResult> SessionState::run(std::span<const TokenId> prompt, const RunOptions& options,
                                         const TokenCallback& on_token, const PromptCallback& on_prompt) {
  const std::lock_guard<std::mutex> turn(model->busy);
  if (prompt.empty())
    return fail(ErrorKind::kInvalidInput, "[generate] the prompt has 0 tokens, expected at least one");
  if (prompt.size() > static_cast<std::size_t>(sequence.context())) {
    return fail(ErrorKind::kInvalidInput,
                "[generate] the prompt has {} tokens, expected at most {}, the context: shorten it or raise --ctx-size",
                prompt.size(), sequence.context());
  }
  const SamplingChoice choice = options.sampling.value_or(model->info.sampling);
  const std::uint64_t seed = options.seed.has_value() ? *options.seed : random_seed();
  const SamplingOptions sampling{.temperature = choice.temperature,
                                 .top_k = choice.top_k,
                                 .top_p = choice.top_p,
                                 .min_p = choice.min_p,
                                 .seed = seed};
  if (Status sane = check_sampling(sampling); !sane.ok()) return sane.error();
  if (options.max_tokens.has_value() && *options.max_tokens < 0) {
    return fail(ErrorKind::kInvalidInput, "[generate] at most {} tokens, expected 0 or more", *options.max_tokens);
  }
  // A prompt that lies within what this session holds goes on from it: rows generated earlier are fed as such again.
  const bool continues = prompt.size() <= tokens.size() && std::equal(prompt.begin(), prompt.end(), tokens.begin());
  const int first_generated = continues && generated_from < static_cast<int>(prompt.size()) ? generated_from : -1;
  if (Status kept = keep_common_prefix(prompt); !kept.ok()) return kept.error();
  tokens.assign(prompt.begin(), prompt.end());
  generated_from = first_generated >= 0 ? first_generated : static_cast<int>(prompt.size());

  const Sampler sampler(sampling, sequence.vocab());
  const std::vector<TokenId> stop_ids(model->model.config.eos_ids.begin(), model->model.config.eos_ids.end());
  const std::span<const TokenId> stops =
      options.ignore_eos ? std::span<const TokenId>{} : std::span<const TokenId>(stop_ids);
  TextOutput output(model->tokenizer(), options.stop);
  const PathCounters before = sequence.paths();

  bool stopped_by_text = false;
  const auto take = [&](TokenId id) {
    const std::string piece = output.push(id);
    const bool wanted = !on_token || on_token({.id = id, .text = piece});
    if (output.stopped()) stopped_by_text = true;
    return output.stopped() ? Proceed::kStop : wanted ? Proceed::kGoOn : Proceed::kCancel;
  };
  const auto read = [&](int done, int all) {
    return !on_prompt || on_prompt(done, all) ? Proceed::kGoOn : Proceed::kCancel;
  };
  const Result<Generation> done = latte::generate({.target = sequence,
                                                   .drafter = drafter.get(),
                                                   .sampler = sampler,
                                                   .tokens = tokens,
                                                   .options = {.max_tokens = options.max_tokens.value_or(-1),
                                                               .depth = depth,
                                                               .stop_ids = stops,
                                                               .first_generated = first_generated},
                                                   .on_token = take,
                                                   .on_prompt_rows = read});
  if (!done.ok()) return done.error();
  if (const std::string rest = output.finish(); !rest.empty() && on_token)
    on_token({.id = tokens.back(), .text = rest});

  const DecodeStats& stats = done->stats;
  GenerateResult result;
  result.text = output.text();
  result.ids.assign(tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end());
  result.prompt_ids.assign(prompt.begin(), prompt.end());
  result.finish_reason = stopped_by_text || output.stopped() ? "stop" : finish_word(done->finish_reason);
  result.seed = seed;
  result.prompt_tokens = stats.prompt_tokens;
  result.cached_tokens = stats.cached_tokens;
  result.generated_tokens = stats.generated_tokens;
  result.prompt_seconds = stats.prompt_seconds;
  result.generate_seconds = stats.generate_seconds;
  result.draft_seconds = stats.draft_seconds;
  result.verify_seconds = stats.verify_seconds;
  result.unaccounted_seconds = stats.unaccounted_seconds();
  result.spec_type = word(spec);
  result.draft_depth = stats.depth;
  result.rounds = stats.rounds;
  result.drafted = stats.drafted;
  result.accepted = stats.accepted;
  const std::size_t positions = static_cast<std::size_t>(stats.depth);
  result.accepted_per_position.assign(stats.accepted_per_position.begin(),
                                      stats.accepted_per_position.begin() + positions);
  result.tested_per_position.assign(stats.tested_per_position.begin(), stats.tested_per_position.begin() + positions);
  result.emitted_per_round = stats.emitted_per_round();
  result.paths = difference(sequence.paths(), before);
  result.peak_bytes = peak_resident_bytes();
  result.device = model->info.device;
  result.isa = model->info.isa;
  result.numerics = model->info.numerics;
  return result;
}

Status SessionState::logits(std::span<const TokenId> ids, const LogitsOptions& options, const LogitsSink& on_main,
                            const LogitsSink& on_mtp) {
  const std::lock_guard<std::mutex> turn(model->busy);
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
                                .on_main = on_main,
                                .on_mtp = on_mtp});
  tokens.assign(ids.begin(), ids.begin() + sequence.length());
  generated_from = sequence.length();
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

std::shared_ptr<const SnapshotState> SessionState::snapshot() const {
  const std::lock_guard<std::mutex> turn(model->busy);
  const auto taken = std::make_shared<SnapshotState>();
  taken->model = model;
  taken->tokens = tokens;
  taken->generated_from = generated_from;
  taken->cache = sequence.cache().snapshot();
  if (mtp_drafter != nullptr) taken->mtp = mtp_snapshot();
  return taken;
}

MtpSnapshot SessionState::mtp_snapshot() const {
  const ConstMatRef kept = mtp_sequence->kept();
  MtpSnapshot taken{.cache = mtp_sequence->cache().snapshot(),
                    .place = mtp_drafter->place(),
                    .kept_rows = static_cast<int>(kept.rows),
                    .kept = std::vector<float>(static_cast<std::size_t>(kept.rows * kept.cols))};
  if (kept.rows > 0) model->backend->download(kept, taken.kept);
  return taken;
}

Status SessionState::restore(const SnapshotState& snapshot) {
  const std::lock_guard<std::mutex> turn(model->busy);
  if (snapshot.model.owner_before(model) || model.owner_before(snapshot.model)) {
    return fail(ErrorKind::kInvalidInput,
                "[session] a snapshot of another engine's model, expected one of {}: read the prompt anew",
                model->info.model_directory);
  }
  if (Status restored = sequence.cache().restore(snapshot.cache); !restored.ok()) return restored;
  tokens = snapshot.tokens;
  generated_from = snapshot.generated_from;
  return drafter == nullptr ? Status{} : restore_drafter(snapshot);
}

/// Drafters that start from nothing read what they need from the tokens, or start on a window.
Status SessionState::restore_drafter(const SnapshotState& snapshot) {
  if (Status emptied = drafter->rewind_to(0); !emptied.ok()) return emptied;
  if (mtp_drafter == nullptr || !snapshot.mtp.has_value()) return {};
  const MtpSnapshot& mtp = *snapshot.mtp;
  if (Status restored = mtp_sequence->cache().restore(mtp.cache); !restored.ok()) return restored;
  if (mtp.kept_rows > 0) {
    const DType activation = model->backend->info().activation;
    const std::int64_t width = model->model.config.hidden;
    Result<DeviceBuffer> memory = model->backend->allocate(mtp.kept.size() * dtype_bytes(activation));
    if (!memory.ok()) return memory.error();
    const MatRef rows{memory->data(), activation, mtp.kept_rows, width, width};
    model->backend->upload(std::vector<double>(mtp.kept.begin(), mtp.kept.end()), rows);
    mtp_sequence->keep(rows);
  }
  mtp_drafter->put_back(mtp.place);
  return {};
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
