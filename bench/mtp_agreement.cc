// How often the MTP layer and the main model agree on held-out text, by position, beside the figures measured in
// training; and what chained drafts bring in the decoding loop.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "decode/mtp_drafter.h"
#include "decode/speculative_loop.h"
#include "device/open_backend.h"
#include "forced_text.h"
#include "measure.h"
#include "model/sequence.h"

namespace latte::bench {
namespace {

struct Bucket {
  std::string name;
  std::size_t end;
};
const std::vector<Bucket> kBuckets = {{"0-1K", 1024}, {"1-2K", 2048}, {"2-4K", 4096}, {"4-8K", 8192}, {"8-16K", 16384}};

struct Count {
  std::int64_t agreed = 0, tested = 0;
};

TokenId best(const float* row, std::int64_t count) {
  return static_cast<TokenId>(std::max_element(row, row + count) - row);
}

// Teacher-forced: the main model's choice of every position, and the MTP layer's two positions ahead.
Status count_agreement(const Model& model, Backend& backend, const std::vector<TokenId>& ids,
                       std::map<std::string, Count>& counts) {
  const SequenceOptions options{.context = static_cast<int>(ids.size()), .cache_dtype = DType::kBf16};
  ModelSequence main(model, backend, options);
  MtpSequence mtp(model, backend, options, main.scratch());
  std::vector<TokenId> choice(ids.size()), drafted(ids.size());
  for (std::size_t first = 0; first < ids.size();) {
    const std::size_t rows = std::min<std::size_t>(512, ids.size() - first);
    auto step = main.step(std::span(ids).subspan(first, rows), Role::kPrompt, LogitsWanted::kAll);
    if (!step.ok()) return step.error();
    for (std::size_t i = 0; i < rows; ++i)
      choice[first + i] = best(step->logits.row(static_cast<std::int64_t>(i)), step->logits.cols);
    const std::size_t paired = std::min(rows, ids.size() - 1 - first);
    if (paired > 0) {
      auto draft =
          mtp.step(std::span(ids).subspan(first + 1, paired),
                   step->hidden.rows_from(0, static_cast<std::int64_t>(paired)), Role::kPrompt, LogitsWanted::kAll);
      if (!draft.ok()) return draft.error();
      for (std::size_t i = 0; i < paired; ++i)
        drafted[first + i] = best(draft->logits.row(static_cast<std::int64_t>(i)), draft->logits.cols);
    }
    first += rows;
  }
  for (std::size_t i = 0; i + 2 < ids.size();
       ++i) {  // row i guesses token i + 2, which the main model chooses at i + 1
    const auto bucket = std::find_if(kBuckets.begin(), kBuckets.end(), [&](const Bucket& b) { return i < b.end; });
    for (const std::string& name : {bucket->name, std::string("all")}) {
      counts[name].agreed += drafted[i] == choice[i + 1];
      ++counts[name].tested;
    }
  }
  return {};
}

// Greedy generation with chained drafts after prompts cut from the documents.
Status chained(const Model& model, Backend& backend, const std::vector<std::vector<TokenId>>& documents,
               const std::string& kind) {
  DecodeStats total;
  for (const auto& document : documents) {
    if (document.size() < 600) continue;
    const SequenceOptions options{.cache_dtype = DType::kBf16};
    ModelSequence main(model, backend, options);
    MtpSequence mtp(model, backend, options, main.scratch());
    MtpDrafter drafter(mtp);
    const Sampler sampler({}, model.config.vocab);
    std::vector<TokenId> tokens(document.begin(), document.begin() + 512);
    const auto done = generate({.target = main,
                                .drafter = &drafter,
                                .sampler = sampler,
                                .tokens = tokens,
                                .options = {.max_tokens = 96, .depth = 4}});
    if (!done.ok()) return done.error();
    total.rounds += done->stats.rounds;
    total.emitted_in_rounds += done->stats.emitted_in_rounds;
    for (int i = 0; i < 4; ++i) {
      const auto at = static_cast<std::size_t>(i);
      total.tested_per_position[at] += done->stats.tested_per_position[at];
      total.accepted_per_position[at] += done->stats.accepted_per_position[at];
    }
  }
  fmt::print("| {} | {} |", kind, total.rounds);
  for (std::size_t i = 0; i < 4; ++i) {
    fmt::print(" {:.3f} |", static_cast<double>(total.accepted_per_position[i]) /
                                static_cast<double>(std::max<std::int64_t>(1, total.tested_per_position[i])));
  }
  fmt::print(" {:.2f} |\n", total.emitted_per_round());
  return {};
}

int run(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_mtp_agreement MODEL_DIR HELDOUT_DIR EVAL_JSON [MOST_TOKENS] [KIND...]\n");
    return 2;
  }
  const std::size_t most = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 16384;
  std::vector<std::string> kinds(argv + std::min(argc, 5), argv + argc);
  if (kinds.empty()) kinds = {"code", "docs", "prose"};
  const auto model = load_model(argv[1]);
  const auto tokenizer = Tokenizer::load(argv[1]);
  const auto backend = open_backend({.device = "cpu", .compute = DType::kBf16});
  std::ifstream eval_file(argv[3]);
  if (!model.ok() || !tokenizer.ok() || !backend.ok() || !eval_file) {
    fmt::print(stderr, "error: cannot open the model or {}\n", argv[3]);
    return 1;
  }
  const nlohmann::json eval = nlohmann::json::parse(eval_file);
  fmt::print(
      "# MTP layer of latte-tiny on held-out text\n\ncommand: `bench_mtp_agreement MODEL_DIR HELDOUT_DIR EVAL_JSON "
      "{}`; machine: {}\n\n",
      most, machine_line((*backend)->info()));
  fmt::print(
      "## Teacher-forced agreement with the main model's choice\n\n| text | positions | rows | ours | training code | "
      "difference |\n|---|---|---|---|---|---|\n");
  bool within = true;
  std::map<std::string, std::vector<std::vector<TokenId>>> documents;
  for (const std::string& kind : kinds) {
    auto read = read_documents(*tokenizer, std::string(argv[2]) + "/heldout_" + kind + ".txt", most);
    if (!read.ok()) {
      fmt::print(stderr, "error: {}\n", read.error().message);
      return 1;
    }
    std::map<std::string, Count> counts;
    for (const auto& document : *read) {
      if (Status counted = count_agreement(*model, **backend, document, counts); !counted.ok()) {
        fmt::print(stderr, "error: {}\n", counted.error().message);
        return 1;
      }
    }
    for (const auto& [name, count] : counts) {
      if (most < 16384 && name == "all") continue;
      const double ours = static_cast<double>(count.agreed) / static_cast<double>(count.tested);
      const double theirs = eval["text"][kind][name]["mtp_agrees_with_main"];
      within = within && std::abs(ours - theirs) <= 0.01;
      fmt::print("| {} | {} | {} | {:.4f} | {:.4f} | {:+.4f} |\n", kind, name, count.tested, ours, theirs,
                 ours - theirs);
      std::fflush(stdout);
    }
    documents[kind] = std::move(*read);
  }
  fmt::print(
      "\nevery difference within 0.01: {}\n\n## Chained drafts, greedy, depth 4 (accepted over tested by "
      "position)\n\n| text | rounds | 1 | 2 | 3 | 4 | emitted per round |\n|---|---|---|---|---|---|---|\n",
      within ? "yes" : "no");
  for (const std::string& kind : kinds) {
    if (Status done = chained(*model, **backend, documents[kind], kind); !done.ok()) return 1;
  }
  return within ? 0 : 1;
}

}  // namespace
}  // namespace latte::bench

int main(int argc, char** argv) { return latte::bench::run(argc, argv); }
