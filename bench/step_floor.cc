// latte-tiny: a plain step against the floor of its bytes, and MTP at depth 1 against plain decoding on held-out text,
// interleaved.
#include <fmt/format.h>

#include <optional>
#include <set>

#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "forced_text.h"
#include "measure.h"
#include "model/sequence.h"
#include "timed_backend.h"

namespace latte::bench {
namespace {

constexpr int kPrompt = 256;
constexpr int kSegment = 128;
constexpr int kSegments = 3;
constexpr std::size_t kDocuments = 12;  // spread over the file

std::size_t bytes_of(const ConstMatRef& m) { return static_cast<std::size_t>(m.rows * m.cols) * dtype_bytes(m.dtype); }
std::size_t bytes_of(const ExpertWeights& e) { return bytes_of(e.gate) + bytes_of(e.up) + bytes_of(e.down); }

std::size_t bytes_of(const MlaWeights& a) {
  const auto stack = [](const ConstStackRef& s) {
    return static_cast<std::size_t>(s.count * s.rows * s.cols) * dtype_bytes(s.dtype);
  };
  return bytes_of(a.q_proj) + bytes_of(a.q_a) + bytes_of(a.q_b) + bytes_of(a.kv_a) + bytes_of(a.o_proj) +
         stack(a.w_uk) + stack(a.w_uv);
}

// Bytes of weights that one row of one layer reads.
std::size_t active_bytes(const LayerWeights& layer, int top_k) {
  std::size_t bytes = bytes_of(layer.attention);
  if (!layer.ffn.is_moe) return bytes + bytes_of(layer.ffn.dense);
  return bytes + bytes_of(layer.ffn.router) + bytes_of(layer.ffn.shared) +
         static_cast<std::size_t>(top_k) * bytes_of(layer.ffn.experts.front());
}

std::size_t active_bytes(const Model& model) {
  std::size_t bytes = bytes_of(model.weights.head);
  for (const LayerWeights& layer : model.weights.layers) bytes += active_bytes(layer, model.config.moe.top_k);
  return bytes;
}

// One arm: its own caches, advancing through the same text.
struct Arm {
  Arm(const Model& model, Backend& backend, const std::vector<TokenId>& all, bool drafts)
      : text(all),
        sequence(model, backend, {.cache_dtype = DType::kBf16}),
        target(sequence, text),
        mtp(model, backend, {.cache_dtype = DType::kBf16}, sequence.scratch()),
        tokens(all.begin(), all.begin() + kPrompt),
        sampler({}, model.config.vocab) {
    if (drafts) drafter = std::make_unique<MtpDrafter>(mtp);
  }

  double advance(int count) {
    const auto done =
        generate({.target = target,
                  .drafter = drafter.get(),
                  .sampler = sampler,
                  .tokens = tokens,
                  .options = {.max_tokens = count, .depth = drafter == nullptr ? 0 : 1, .first_generated = kPrompt}});
    if (!done.ok()) {
      fmt::print(stderr, "error: {}\n", done.error().message);
      std::exit(1);
    }
    drafted += done->stats.drafted;
    accepted += done->stats.accepted;
    rounds += done->stats.rounds + 1;
    emitted += count;
    draft_seconds += done->stats.draft_seconds;
    verify_seconds += done->stats.verify_seconds;
    return done->stats.generate_seconds + done->stats.prompt_seconds;
  }

  const std::vector<TokenId>& text;
  ModelSequence sequence;
  ForcedTextTimeline target;
  MtpSequence mtp;
  std::vector<TokenId> tokens;
  Sampler sampler;
  std::unique_ptr<Drafter> drafter;
  std::int64_t drafted = 0, accepted = 0, rounds = 0, emitted = 0;
  double draft_seconds = 0, verify_seconds = 0;
};

void plain_step_against_floor(const Model& model, Backend& backend, const std::vector<TokenId>& text) {
  auto pool = ThreadPool::start(backend.info().threads);
  const auto model_bytes = static_cast<std::size_t>(model.weights.report.bytes);
  const std::vector<std::byte> buffer(model_bytes, std::byte{1});
  ModelSequence sequence(model, backend, {.cache_dtype = DType::kBf16});
  (void)sequence.step(std::span(text).first(kPrompt), Role::kPrompt, LogitsWanted::kNone).ok();
  std::vector<double> bandwidths, steps;
  for (int round = 0; round < 40; ++round) {
    bandwidths.push_back(read_bandwidth(**pool, buffer, 5));
    for (int i = 0; i < 5; ++i) {
      const auto next = std::span(text).subspan(static_cast<std::size_t>(sequence.length()), 1);
      steps.push_back(seconds_of([&] { (void)sequence.step(next, Role::kGenerated, LogitsWanted::kLast).ok(); }));
    }
  }
  const double bandwidth = median(bandwidths);
  const std::size_t active = active_bytes(model);
  const double floor = static_cast<double>(active) / bandwidth;
  fmt::print(
      "## Plain step\n\n| active bytes | read bandwidth | floor | step | step / floor | T "
      "|\n|---|---|---|---|---|---|\n");
  fmt::print("| {:.1f} MB | {:.1f} GB/s ({:.0f} MB buffer) | {:.3f} ms | {:.3f} ms | {:.2f} | {}-{} |\n\n",
             static_cast<double>(active) / 1e6, bandwidth / 1e9, static_cast<double>(model_bytes) / 1e6, floor * 1e3,
             median(steps) * 1e3, median(steps) / floor, kPrompt, sequence.length());
  fmt::print("paths: absorbed {}, materialised {}\n\n", sequence.paths().absorbed_steps,
             sequence.paths().materialised_steps);
  std::fflush(stdout);
}

// Where a plain step's time goes, by operation.
void profile_of_plain_step(const Model& model, Backend& backend, const std::vector<TokenId>& text) {
  TimedBackend timed(backend);
  ModelSequence sequence(model, timed, {.cache_dtype = DType::kBf16});
  (void)sequence.step(std::span(text).first(kPrompt), Role::kPrompt, LogitsWanted::kNone).ok();
  timed.reset();
  constexpr int kSteps = 200;
  const double whole = seconds_of([&] {
    for (int i = 0; i < kSteps; ++i) {
      (void)sequence
          .step(std::span(text).subspan(static_cast<std::size_t>(sequence.length()), 1), Role::kGenerated,
                LogitsWanted::kLast)
          .ok();
    }
  });
  fmt::print(
      "### Profile of the plain step, {:.3f} ms in a run of its own\n\n| operation | calls a step | us a step | share "
      "|\n|---|---|---|---|\n",
      whole / kSteps * 1e3);
  double accounted = 0;
  for (int i = 0; i < TimedBackend::kOperations; ++i) {
    const auto operation = static_cast<TimedBackend::Operation>(i);
    if (timed.calls(operation) == 0) continue;
    accounted += timed.seconds(operation);
    fmt::print("| {} | {:.0f} | {:.1f} | {:.1f}% |\n", TimedBackend::kNames[static_cast<std::size_t>(i)],
               static_cast<double>(timed.calls(operation)) / kSteps, timed.seconds(operation) / kSteps * 1e6,
               timed.seconds(operation) / whole * 100);
  }
  fmt::print("| outside operations | | {:.1f} | {:.1f}% |\n\n", (whole - accounted) / kSteps * 1e6,
             (whole - accounted) / whole * 100);
  std::fflush(stdout);
}

void mtp_against_plain(const Model& model, Backend& backend, const Tokenizer& tokenizer, const std::string& folder,
                       const std::string& kind) {
  const auto documents =
      read_documents(tokenizer, folder + "/heldout_" + kind + ".txt", kPrompt + kSegments * kSegment + 10);
  if (!documents.ok()) {
    fmt::print(stderr, "error: {}\n", documents.error().message);
    std::exit(1);
  }
  double plain_seconds = 0, mtp_seconds = 0, control_seconds = 0;
  std::int64_t drafted = 0, accepted = 0, rounds = 0, emitted = 0, absorbed = 0;
  double draft_seconds = 0, verify_seconds = 0;
  std::vector<const std::vector<TokenId>*> long_enough;
  for (const auto& document : *documents) {
    if (document.size() >= kPrompt + kSegments * kSegment + 10) long_enough.push_back(&document);
  }
  const std::size_t used = std::min(kDocuments, long_enough.size());
  for (std::size_t i = 0; i < used; ++i) {
    const std::vector<TokenId>& document = *long_enough[i * long_enough.size() / used];
    Arm plain(model, backend, document, false), mtp(model, backend, document, true),
        control(model, backend, document, false);
    plain.advance(8), mtp.advance(8), control.advance(8);
    for (int segment = 0; segment < kSegments; ++segment) {
      if (segment % 2 == 0) {
        plain_seconds += plain.advance(kSegment);
        mtp_seconds += mtp.advance(kSegment);
        control_seconds += control.advance(kSegment);
      } else {
        control_seconds += control.advance(kSegment);
        mtp_seconds += mtp.advance(kSegment);
        plain_seconds += plain.advance(kSegment);
      }
    }
    drafted += mtp.drafted, accepted += mtp.accepted, rounds += mtp.rounds, emitted += mtp.emitted;
    draft_seconds += mtp.draft_seconds, verify_seconds += mtp.verify_seconds;
    absorbed += mtp.sequence.paths().absorbed_steps;
  }
  const double tokens = static_cast<double>(emitted - 8 * static_cast<std::int64_t>(used));
  fmt::print("| {} | {} | {:.1f} | {:.1f} | **{:.3f}** | {:.3f} | {:.3f} | {:.2f} | {:.3f} | {:.3f} | {} |\n", kind,
             emitted, tokens / plain_seconds, tokens / mtp_seconds, (plain_seconds + control_seconds) / 2 / mtp_seconds,
             control_seconds / plain_seconds, static_cast<double>(accepted) / static_cast<double>(drafted),
             static_cast<double>(emitted) / static_cast<double>(rounds),
             draft_seconds / static_cast<double>(rounds) * 1e3, verify_seconds / static_cast<double>(rounds) * 1e3,
             absorbed);
}

int run(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_step_floor MODEL_DIR HELDOUT_DIR [THREADS] [ISA]\n");
    return 2;
  }
  const auto model = load_model(argv[1]);
  const auto tokenizer = Tokenizer::load(argv[1]);
  const auto backend = open_backend({.device = "cpu",
                                     .isa = argc > 4 ? argv[4] : "auto",
                                     .threads = argc > 3 ? std::atoi(argv[3]) : 2,
                                     .compute = DType::kBf16});
  if (!model.ok() || !tokenizer.ok() || !backend.ok()) {
    fmt::print(stderr, "error: {}\n",
               !model.ok()       ? model.error().message
               : !tokenizer.ok() ? tokenizer.error().message
                                 : backend.error().message);
    return 1;
  }
  const auto documents = read_documents(*tokenizer, std::string(argv[2]) + "/heldout_code.txt", 4096);
  const std::vector<TokenId>* text = nullptr;
  if (documents.ok()) {
    for (const auto& document : *documents) {
      if (document.size() > kPrompt + 256) text = &document;
    }
  }
  if (text == nullptr) {
    fmt::print(stderr, "error: {}: no document of more than {} tokens\n", argv[2], kPrompt + 256);
    return 1;
  }
  fmt::print(
      "# latte-tiny on the CPU: plain step and MTP\n\ncommand: `bench_step_floor MODEL_DIR HELDOUT_DIR {}`; machine: "
      "{}\n\n",
      (*backend)->info().threads, machine_line((*backend)->info()));
  plain_step_against_floor(*model, **backend, *text);
  profile_of_plain_step(*model, **backend, *text);
  fmt::print(
      "## MTP at depth 1 against plain, teacher-forced replay of held-out text\n\nThe text's own tokens are the "
      "target's choices, so a draft is accepted when it is the text's next token. Arms take turns every {} tokens "
      "(ABC, CBA); control is a second plain arm.\n\n",
      kSegment);
  fmt::print(
      "| text | tokens | plain tok/s | MTP tok/s | MTP / plain | control / plain | accepted / drafted | emitted per "
      "round | draft ms | verify ms | absorbed steps |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const char* kind : {"docs", "code"}) {
    mtp_against_plain(*model, **backend, *tokenizer, argv[2], kind);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace latte::bench

int main(int argc, char** argv) { return latte::bench::run(argc, argv); }
