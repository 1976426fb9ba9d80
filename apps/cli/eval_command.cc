#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "interrupts.h"
#include "latte/eval.h"
#include "open_engine.h"
#include "outcome.h"
#include "token_ids.h"

namespace latte::cli {
namespace {

std::string eval_json(const EvalReport& report) {
  using Object = nlohmann::ordered_json;
  Object windows = Object::array();
  for (const EvalWindow& window : report.windows) {
    windows.push_back({{"document", window.document},
                       {"first", window.first},
                       {"tokens", window.score.tokens},
                       {"bytes", window.score.bytes},
                       {"nll", window.score.nll},
                       {"bits_per_byte", window.score.bits_per_byte()},
                       {"perplexity", window.score.perplexity()}});
  }
  const Object object = {
      {"tokens", report.total.tokens},
      {"nll", report.total.nll},
      {"nll_per_token", report.total.nll_per_token()},
      {"bits_per_byte", report.total.bits_per_byte()},
      {"perplexity", report.total.perplexity()},
      {"bytes", report.total.bytes},
      {"documents", report.documents},
      {"context", report.context},
      {"windows", windows},
      {"paths", {{"absorbed", report.paths.absorbed_steps}, {"materialised", report.paths.materialised_steps}}},
      {"seconds", report.seconds}};
  return object.dump() + "\n";
}

std::string eval_text(const EvalReport& report) {
  std::string text = "document  first token  tokens  bits per byte  perplexity\n";
  for (const EvalWindow& window : report.windows) {
    text += fmt::format("{:>8}  {:>11}  {:>6}  {:>13.4f}  {:>10.3f}\n", window.document, window.first,
                        window.score.tokens, window.score.bits_per_byte(), window.score.perplexity());
  }
  text +=
      fmt::format("{} documents, {} tokens, {} bytes: {:.4f} bits per byte, perplexity {:.3f}, nll {:.4f} per token\n",
                  report.documents, report.total.tokens, report.total.bytes, report.total.bits_per_byte(),
                  report.total.perplexity(), report.total.nll_per_token());
  return text;
}

}  // namespace

int run_eval(const Arguments& arguments) {
  if (!arguments.has("--model"))
    return misused("no model, expected -m DIR or the name of an embedded model like latte-tiny");
  if (!arguments.has("--file")) return misused("no text, expected -f FILE, - for standard input");
  const Result<std::string> text = read_file(*arguments.text("--file"));
  if (!text.ok()) return failed(text.error());
  ProgressLine progress(arguments);
  const Result<Engine> engine = open_engine(arguments, progress);
  if (!engine.ok()) return failed(engine.error());
  const GracefulInterrupt interrupt;
  const Result<EvalReport> report = evaluate_text(*engine, *text, [&](int done, int all) {
    progress.show(fmt::format("{} of {} tokens", done, all));
    return !interrupt.requested();
  });
  progress.clear();
  if (interrupt.requested()) return kInterrupted;
  if (!report.ok()) return failed(report.error());
  return finish_with(arguments.flag("--json") ? eval_json(*report) : eval_text(*report));
}

}  // namespace latte::cli
