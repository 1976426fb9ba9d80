#include "latte/eval.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "api/engine_access.h"
#include "api/out_of_memory.h"
#include "base/fail.h"
#include "base/stopwatch.h"
#include "decode/open_model.h"

namespace latte {
namespace {

constexpr int kStepRows = 512;  // bounds the logits in memory

double log_sum_exp(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

struct Document {
  std::vector<std::int32_t> ids;
};

Result<std::vector<Document>> read_documents(const TextCodec& codec, std::string_view text) {
  std::vector<Document> documents;
  while (!text.empty()) {
    const std::size_t end = text.find('\0');
    Result<std::vector<std::int32_t>> ids = codec.encode(text.substr(0, end));
    if (!ids.ok()) return ids.error();
    if (!ids->empty()) documents.push_back({std::move(*ids)});
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return documents;
}

/// Reads one window; `ids` may begin with BOS.
Result<TextScore> score_window(Session& session, const Tokenizer& tokenizer, std::span<const std::int32_t> ids,
                               int vocab) {
  TextScore score;
  score.tokens = static_cast<std::int64_t>(ids.size()) - 1;
  for (const std::int32_t id : ids.subspan(1))
    score.bytes += static_cast<std::int64_t>(tokenizer.token_bytes(id).size());
  const auto width = static_cast<std::size_t>(vocab);
  const auto take = [&](int first, std::span<const float> logits) -> Status {
    for (std::size_t row = static_cast<std::size_t>(first); !logits.empty(); ++row, logits = logits.subspan(width)) {
      const std::span<const float> of_row = logits.first(width);
      score.nll += log_sum_exp(of_row) - of_row[static_cast<std::size_t>(ids[row + 1])];
    }
    return {};
  };
  // The last token foretells nothing that is there.
  const std::span<const std::int32_t> fed = ids.first(ids.size() - 1);
  LogitsOptions options;
  options.role = StepRole::kPrompt;
  for (std::size_t left = fed.size(); left > 0; left -= static_cast<std::size_t>(options.steps.back()))
    options.steps.push_back(static_cast<int>(std::min<std::size_t>(left, kStepRows)));
  if (Status done = session.logits(fed, options, take); !done.ok()) return done.error();
  return score;
}

void add(TextScore& total, const TextScore& more) {
  total.tokens += more.tokens;
  total.bytes += more.bytes;
  total.nll += more.nll;
}

Result<EvalReport> evaluate_documents(const Engine& engine, const std::vector<Document>& documents,
                                      const EvalProgress& progress) {
  const Stopwatch clock;
  const Tokenizer& tokenizer = *EngineAccess::model(engine)->tokenizer();
  const std::int32_t bos = tokenizer.bos_id().value_or(-1);
  const bool with_bos = tokenizer.adds_bos() && bos >= 0;
  EvalReport report;
  report.documents = static_cast<int>(documents.size());
  report.context = engine.info().context;
  // The last token of a window needs no row.
  const std::size_t room = static_cast<std::size_t>(report.context) + (with_bos ? 0 : 1);
  int all = 0, done = 0;
  for (const Document& document : documents) all += static_cast<int>(document.ids.size());
  Result<Session> session = Session::open(engine, {.spec = SpecType::kNone, .num_draft_tokens = std::nullopt});
  if (!session.ok()) return session.error();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    std::span<const std::int32_t> rest = documents[i].ids;
    for (int first = 0; !rest.empty();) {
      const std::size_t count = std::min(rest.size(), room);
      std::vector<std::int32_t> window;
      if (with_bos) window.push_back(bos);
      window.insert(window.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
      rest = rest.subspan(count);
      if (window.size() >= 2) {
        const Result<TextScore> score = score_window(*session, tokenizer, window, engine.info().vocab);
        if (!score.ok()) return score.error();
        add(report.total, *score);
        report.windows.push_back({.document = static_cast<int>(i), .first = first, .score = *score});
      }
      first += static_cast<int>(count);
      done += static_cast<int>(count);
      if (progress && !progress(done, all)) return fail(ErrorKind::kCancelled, "[eval] stopped by the caller");
    }
  }
  if (report.total.tokens == 0)
    return fail(ErrorKind::kInvalidInput, "[eval] the text has no token to foretell, expected at least one");
  report.paths = session->paths();
  report.seconds = clock.seconds();
  return report;
}

}  // namespace

double TextScore::nll_per_token() const { return tokens == 0 ? 0 : nll / static_cast<double>(tokens); }
double TextScore::bits_per_byte() const {
  return bytes == 0 ? 0 : nll / std::numbers::ln2 / static_cast<double>(bytes);
}
double TextScore::perplexity() const { return std::exp(nll_per_token()); }

Result<EvalReport> evaluate_text(const Engine& engine, std::string_view text, const EvalProgress& progress) {
  return reporting_no_memory([&]() -> Result<EvalReport> {
    if (engine.text() == nullptr) {
      return fail(ErrorKind::kNotFound, "{}: no tokenizer, expected one to read a text with",
                  engine.info().model_directory);
    }
    const Result<std::vector<Document>> documents = read_documents(*engine.text(), text);
    if (!documents.ok()) return documents.error();
    return evaluate_documents(engine, *documents, progress);
  });
}

}  // namespace latte
