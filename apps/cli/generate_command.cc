#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "commands.h"
#include "generate_report.h"
#include "interrupts.h"
#include "latte/session.h"
#include "open_engine.h"
#include "outcome.h"
#include "prompt_cache_file.h"
#include "run_arguments.h"
#include "step_log.h"
#include "token_ids.h"

namespace latte::cli {
namespace {

Status check_sources(const Arguments& arguments) {
  const int sources = int{arguments.has("--prompt")} + int{arguments.has("--file")} + int{arguments.has("--ids")};
  if (!arguments.has("--model"))
    return Error{ErrorKind::kInvalidInput,
                 "no model, expected -m DIR or the name of an embedded model like latte-tiny"};
  if (sources != 1) {
    return Error{ErrorKind::kInvalidInput,
                 fmt::format("{} prompts, expected exactly one of -p TEXT, -f FILE and --ids LIST", sources)};
  }
  return {};
}

void warn_unused(const Arguments& arguments, std::string_view reason) {
  for (const char* option : {"--system-prompt", "--kwargs"}) {
    if (arguments.has(option)) warn(fmt::format("{} is not used: {}", option, reason));
  }
}

// The ids to continue where they are given as a text: raw, or the chat template's rendering of it.
Result<std::vector<std::int32_t>> prompt_ids(const Arguments& arguments, const Engine& engine) {
  const TextCodec* codec = engine.text();
  const bool chats = !arguments.flag("--raw") && codec != nullptr && codec->has_template();
  if (!chats) {
    warn_unused(arguments, arguments.flag("--raw") ? "--raw takes the prompt as text"
                                                   : "the model has no chat template to put it in");
  }
  Result<std::string> text =
      arguments.has("--file") ? read_file(*arguments.text("--file")) : *arguments.text("--prompt");
  if (!text.ok()) return text.error();
  if (codec == nullptr) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("{}: no tokenizer, expected one for a text prompt: give the prompt as --ids 1,2,3",
                             engine.info().model_directory)};
  }
  if (!chats) return codec->encode(*text, {.match_special = false, .add_bos = codec->adds_bos()});
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  if (const auto system = arguments.text("--system-prompt"))
    messages.push_back({{"role", "system"}, {"content", *system}});
  messages.push_back({{"role", "user"}, {"content", *text}});
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  return codec->encode_chat(
      {.messages = messages.dump(-1, ' ', false, replace), .tools = "", .kwargs = arguments.text_or("--kwargs", "")});
}

}  // namespace

int run_generate(const Arguments& arguments) {
  if (Status sources = check_sources(arguments); !sources.ok()) return misused(sources.error());
  const Result<SessionOptions> how = session_options(arguments);
  if (!how.ok()) return misused(how.error());
  const Result<std::vector<BiasTerm>> bias = parse_logit_bias(arguments.list("--logit-bias"));
  if (!bias.ok()) return misused(bias.error());
  Result<std::vector<std::int32_t>> prompt = std::vector<std::int32_t>();
  if (const auto list = arguments.text("--ids")) {
    prompt = parse_token_ids(*list);
    if (!prompt.ok()) return ids_refused(*list, prompt.error());
    warn_unused(arguments, "--ids give the whole prompt");
  }
  const bool json = arguments.flag("--json");
  if (!json && arguments.has("--logprobs")) warn("--logprobs is not used: they are printed with --json");

  ProgressLine progress(arguments);
  const Result<Engine> engine = open_engine(arguments, progress);
  if (!engine.ok()) return failed(engine.error());
  if (!arguments.has("--ids")) prompt = prompt_ids(arguments, *engine);
  if (!prompt.ok()) return failed(prompt.error());
  Result<Session> session = Session::open(*engine, *how);
  if (!session.ok()) return failed(session.error());
  PromptCacheFile cache(arguments);
  if (Status loaded = cache.load(*session); !loaded.ok()) return failed(loaded.error());

  StepLog steps;
  if (arguments.flag("--verbose")) session->watch_steps([&steps](const StepReport& step) { steps.add(step); });
  progress.show(fmt::format("reading {} tokens", prompt->size()));
  const GracefulInterrupt interrupt;
  Status printed;
  std::string_view separator;  // of ids, which is what a model without a tokenizer writes
  const auto on_token = [&](const TokenEvent& event) {
    progress.clear();
    if (!json && !event.text.empty() && printed.ok()) printed = print(event.text);
    if (!json && engine->text() == nullptr && printed.ok()) {
      printed = print(fmt::format("{}{}", std::exchange(separator, ","), event.id));
    }
    return printed.ok() && !interrupt.requested();
  };
  const auto on_prompt = [&](int done, int all) {
    progress.show(fmt::format("reading the prompt: {} of {} tokens", done, all));
    return !interrupt.requested();
  };
  const Result<GenerateResult> result =
      session->generate(*prompt, run_options(arguments, *bias, engine->info()), on_token, on_prompt);
  progress.clear();
  if (!result.ok()) return failed(result.error());
  cache.explain(*prompt, result->cached_tokens, engine->info().numerics == "pinned", engine->text());
  const Status saved = cache.save(*session);
  if (!printed.ok()) return failed(printed.error());

  if (json) {
    if (const int code = finish_with(generate_json(*result) + "\n"); code != 0) return code;
  } else {
    if (const int code = finish_with("\n"); code != 0) return code;
    tell(generate_summary(*result));
  }
  if (!saved.ok()) return failed(saved.error());
  tell(steps.text());
  return interrupt.requested() ? kInterrupted : 0;
}

}  // namespace latte::cli
