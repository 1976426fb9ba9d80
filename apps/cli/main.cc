#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "environment.h"
#include "interrupts.h"
#include "latte/version.h"
#include "option_table.h"
#include "outcome.h"
#include "suggest.h"

namespace latte::cli {
namespace {

int run_command(Command command, const Arguments& arguments) {
  switch (command) {
    case Command::kGenerate:
      return run_generate(arguments);
    case Command::kChat:
      return run_chat(arguments);
    case Command::kLogits:
      return run_logits(arguments);
    case Command::kEval:
      return run_eval(arguments);
    case Command::kPlan:
      return run_plan(arguments);
    case Command::kInspect:
      return run_inspect(arguments);
    case Command::kQuantize:
      return run_quantize(arguments);
    case Command::kBench:
      return run_bench(arguments);
    case Command::kTune:
      return run_tune(arguments);
    case Command::kDoctor:
      return run_doctor(arguments);
    case Command::kTokenize:
      return run_tokenize(arguments);
    case Command::kDetokenize:
      return run_detokenize(arguments);
    case Command::kApplyTemplate:
      return run_apply_template(arguments);
    case Command::kCompletion:
      return run_completion(arguments);
    case Command::kMan:
      return run_man(arguments);
  }
  return kMisused;
}

/// Commands that are planned, and what serves until they come.
struct Planned {
  std::string_view name, instead;
};

constexpr Planned kPlanned[] = {
    {"serve", "latte chat --json answers a line at a time on standard input and output"},
};

int run(std::span<char* const> words) {
  // `latte help COMMAND` is `latte COMMAND --help`.
  if (words.size() > 1 && std::string_view(words[0]) == "help") {
    for (const CommandSpec& command : command_table())
      if (command.name == words[1]) return finish_with(command_help(command));
  }
  if (words.empty()) return misused("no command, expected one of those that latte --help lists");
  const std::string_view name = words[0];
  if (name == "--help" || name == "-h" || (name == "help" && words.size() == 1)) return finish_with(program_help());
  if (name == "--version" || name == "version") return finish_with(fmt::format("latte {}\n", kVersion));
  if (name == "--help-markdown") return finish_with(options_page());
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) {
    names.push_back(command.name);
    if (command.name != name) continue;
    const Result<Arguments> arguments = Arguments::parse(command, words.subspan(1));
    if (!arguments.ok()) return misused(arguments.error());
    if (arguments->wants_help()) return finish_with(command_help(command));
    if (const auto path = arguments->text("--log-file")) {
      if (const Status opened = open_log(*path); !opened.ok()) return failed(opened.error());
    }
    warn_of_unknown_variables();
    return run_command(command.command, *arguments);
  }
  for (const Planned& planned : kPlanned) {
    if (planned.name != name) continue;
    return failed({ErrorKind::kUnsupported, fmt::format("latte {} is not there yet, expected one of {}; {}", name,
                                                        fmt::join(names, ", "), planned.instead)});
  }
  return misused(
      fmt::format("unknown command \"{}\"{}, expected one that latte --help lists", name, suggestion(name, names)));
}

}  // namespace
}  // namespace latte::cli

int main(int count, char** words) {
  latte::cli::install_signal_handlers();
  try {
    return latte::cli::run(std::span<char* const>(words, static_cast<std::size_t>(count)).subspan(count > 0 ? 1 : 0));
  } catch (const std::bad_alloc&) {
    return latte::cli::failed(
        {latte::ErrorKind::kOutOfMemory,
         "memory is exhausted, expected room for this request: use a smaller --ctx-size or fewer rows per step"});
  } catch (const std::exception& broken) {
    return latte::cli::failed(
        {latte::ErrorKind::kInvalidInput,
         fmt::format("the program met what it does not know ({}), expected no such thing: please report it",
                     broken.what())});
  }
}
