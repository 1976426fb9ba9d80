#include "option_table.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <limits>

namespace latte::cli {
namespace {

constexpr CommandSet kRuns = only(Command::kGenerate) | only(Command::kLogits);
constexpr CommandSet kOpens = kRuns | only(Command::kInspect);
constexpr CommandSet kTextTools = only(Command::kTokenize) | only(Command::kDetokenize) | only(Command::kApplyTemplate);
constexpr CommandSet kGenerate = only(Command::kGenerate);
constexpr CommandSet kLogits = only(Command::kLogits);
constexpr CommandSet kPlan = only(Command::kPlan);
constexpr CommandSet kAll = kOpens | kTextTools | kPlan;

constexpr double kMostRows = 1 << 30;
constexpr double kSmallest = std::numeric_limits<double>::min();
constexpr double kMostSeed = 18446744073709551615.0;

using enum ValueKind;

constexpr std::array kCommands = {
    CommandSpec{Command::kGenerate, "generate", "write text after a prompt"},
    CommandSpec{Command::kLogits, "logits", "write the logits of given ids to a .npy file"},
    CommandSpec{Command::kPlan, "plan", "what the arithmetic says: cache bytes, weights, which form when"},
    CommandSpec{Command::kInspect, "inspect", "what a model folder holds and what is used of it"},
    CommandSpec{Command::kTokenize, "tokenize", "ids of a text"},
    CommandSpec{Command::kDetokenize, "detokenize", "text of ids"},
    CommandSpec{Command::kApplyTemplate, "apply-template", "the prompt a chat template makes of messages"},
};

constexpr std::array kOptions = {
    OptionSpec{"--model", "-m", kText, "DIR|NAME", "model folder, or the name of an embedded model", kAll},
    OptionSpec{"--config", "", kText, "FILE", "a config.json instead of a model folder", kPlan},

    OptionSpec{"--prompt", "-p", kText, "TEXT", "the text", kGenerate | only(Command::kTokenize)},
    OptionSpec{"--file", "-f", kText, "FILE",
               "read the text (apply-template: the messages, JSON) from a file, - for standard input",
               kGenerate | only(Command::kTokenize) | only(Command::kApplyTemplate)},
    OptionSpec{"--ids", "", kText, "LIST|@FILE", "token ids: 1,2,3 or @file.json", kRuns | only(Command::kDetokenize)},
    OptionSpec{"--system-prompt", "-sys", kText, "TEXT", "first message, for models with a chat template", kGenerate},
    OptionSpec{"--raw", "", kFlag, "", "take the prompt as text, without a chat template", kGenerate},
    OptionSpec{"--predict", "-n --n-predict --max-tokens", kInteger, "N",
               "most tokens to generate (default: until a stop token or the context's end)", kGenerate, -1, kMostRows},
    OptionSpec{"--reverse-prompt", "-r --stop", kList, "TEXT",
               "stop before this text, or at the special token of this name; may be given several times", kGenerate},
    OptionSpec{"--ignore-eos", "", kFlag, "",
               "do not stop at the model's stop tokens; they may still come (forbid them with -l eos-inf)", kGenerate},

    OptionSpec{
        "--prompt-cache-file", "--prompt-cache", kText, "FILE",
        "keep the session here: read it if it is there, reuse what the prompt shares with it, save it at the end",
        kGenerate},

    OptionSpec{"--seed", "-s", kInteger, "N", "seed of the sampling noise (default: random, shown at the end)",
               kGenerate, 0, kMostSeed},
    OptionSpec{"--temp", "--temperature", kReal, "X",
               "0 is greedy (default: the model's generation_config.json, else 0)", kGenerate, 0, 100, 1e-6,
               "0 (greedy) or a number from 1e-6 to 100"},
    OptionSpec{"--top-k", "", kInteger, "N", "keep the N most likely tokens, 0 all", kGenerate, 0, kMostRows},
    OptionSpec{"--top-p", "", kReal, "X", "keep the most likely tokens up to this probability, 1 all", kGenerate,
               kSmallest, 1, kSmallest, "a number above 0 and up to 1"},
    OptionSpec{"--min-p", "", kReal, "X", "keep tokens at least X times as likely as the best, 0 all", kGenerate, 0, 1},

    OptionSpec{"--repeat-penalty", "--repetition-penalty", kReal, "X",
               "divide the logits of recent tokens, prompt included, by X (negative ones: multiply), 1 none", kGenerate,
               0.01, 100, 0.01},
    OptionSpec{"--repeat-last-n", "--repetition-context-size", kInteger, "N",
               "tokens before the new one that --repeat-penalty looks at, 0 none, -1 all (default 64)", kGenerate, -1,
               kMostRows},
    OptionSpec{"--presence-penalty", "", kReal, "X",
               "subtract X from the logits of tokens generated so far; the prompt does not count", kGenerate, -100,
               100},
    OptionSpec{"--frequency-penalty", "", kReal, "X",
               "subtract X for every time the token was generated; the prompt does not count", kGenerate, -100, 100},
    OptionSpec{"--logit-bias", "-l", kList, "ID+X|ID-X|ID=X",
               "add X to a token's logit, -inf forbids it; ID eos is every stop token; may be given several times or "
               "with commas between",
               kGenerate},
    OptionSpec{"--logprobs", "", kInteger, "N",
               "with --json: log probability of each token and of the N likeliest at its place, by the model alone: "
               "before penalties, temperature and filters",
               kGenerate, 0, 20},

    OptionSpec{"--spec-type", "", kChoice, "none|mtp|draft|lookup|auto",
               "who guesses tokens ahead; never changes the text (default auto)", kGenerate},
    OptionSpec{"--draft-model", "-md --model-draft", kText, "DIR|NAME",
               "a small model of the same vocabulary that drafts", kGenerate},
    OptionSpec{"--num-draft-tokens", "--spec-draft-n-max --max-draft --draft-max", kText, "N|auto",
               "drafts per round (auto: 1 for mtp, 4 for draft, up to 8 for lookup)", kGenerate},

    OptionSpec{"--output", "-o", kText, "FILE", "where the logits go (.npy, float32 [T, vocab])", kLogits},
    OptionSpec{"--steps", "", kText, "LIST", "rows per step, n or nxtimes: 48,1x8 (default: one step)", kLogits},
    OptionSpec{"--redo", "", kInteger, "K", "after every step of more than K rows rewind K rows and feed them again",
               kLogits, 0, kMostRows},
    OptionSpec{"--mtp", "", kText, "FILE", "also write the MTP layer's logits (.npy, [T-1, vocab])", kLogits},
    OptionSpec{"--role", "", kChoice, "auto|prompt|generated", "numeric role of the steps (default auto)", kLogits},

    OptionSpec{"--ctx-size", "-c --max-kv-size --max-model-len", kInteger, "N",
               "tokens a session may hold, 0: the model's length", kOpens, 0, kMostRows},
    OptionSpec{"--threads", "-t", kInteger, "N", "threads, 0: the physical cores this process may use", kOpens, 0,
               1024},
    OptionSpec{"--device", "-dev", kChoice, "auto|cpu|reference|cuda|mlx", "where to compute (default auto)", kOpens},
    OptionSpec{"--isa", "", kChoice, "auto|scalar|avx2|avx512|avx512_bf16|avx512_vnni|amx|neon",
               "instruction set of the cpu device", kOpens},
    OptionSpec{"--dtype", "", kChoice, "auto|f32|bf16",
               "what to compute in (auto: f32 for an f32 checkpoint, else bf16)", kOpens},
    OptionSpec{"--cache-type", "-ctk --cache-type-k", kChoice, "auto|bf16|f32|f16|q8|q8_0|fp8",
               "what cached rows are stored as", kOpens | kPlan},
    OptionSpec{"--kv-bits", "", kChoice, "8|16|32", "the same by width: q8, bf16, f32", kOpens | kPlan},
    OptionSpec{"--mla-path", "", kChoice, "auto|absorbed|materialised|formula",
               "form of the attention; forcing one is a diagnostic", kOpens | kPlan},
    OptionSpec{"--numerics", "", kChoice, "fast|pinned", "promise for prompts (default fast)", kOpens},

    OptionSpec{"--new", "", kInteger, "L", "decide one step: its new rows", kPlan, 1, kMostRows},
    OptionSpec{"--cached", "", kInteger, "T", "decide one step: cached rows, the new ones included", kPlan, 1,
               kMostRows},

    OptionSpec{"--special", "", kFlag, "", "special tokens written in the text match", only(Command::kTokenize)},
    OptionSpec{"--bos", "", kFlag, "", "begin with the BOS token", only(Command::kTokenize)},
    OptionSpec{"--tools", "", kText, "FILE", "tools for the template (JSON list)", only(Command::kApplyTemplate)},
    OptionSpec{"--kwargs", "--chat-template-kwargs", kText, "JSON", "variables for the template (JSON object)",
               kGenerate | only(Command::kApplyTemplate)},

    OptionSpec{"--json", "", kFlag, "", "print one JSON value",
               kGenerate | kPlan | only(Command::kInspect) | only(Command::kTokenize)},
    OptionSpec{"--verbose", "-v", kFlag, "", "say on standard error what was chosen and why", kGenerate},
    OptionSpec{"--progress", "", kFlag, "", "show progress even when standard error is no terminal", kOpens},
    OptionSpec{"--no-progress", "", kFlag, "", "never show progress", kOpens},
};

std::string spellings(const OptionSpec& option) {
  std::string all(option.name);
  std::string_view rest = option.aliases;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    all += ", ";
    all += rest.substr(0, space);
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
  }
  return all;
}

}  // namespace

std::span<const CommandSpec> command_table() { return kCommands; }
std::span<const OptionSpec> option_table() { return kOptions; }

std::string environment_name(const OptionSpec& option) {
  std::string name = "LATTE_";
  for (const char c : option.name.substr(2)) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

bool spells(const OptionSpec& option, std::string_view spelling) {
  if (option.name == spelling) return true;
  std::string_view rest = option.aliases;
  while (!rest.empty()) {
    const std::size_t space = rest.find(' ');
    if (rest.substr(0, space) == spelling) return true;
    rest = space == std::string_view::npos ? std::string_view{} : rest.substr(space + 1);
  }
  return false;
}

std::string program_help() {
  std::string text = "usage: latte COMMAND [OPTIONS]\n\ncommands:\n";
  for (const CommandSpec& command : kCommands) text += fmt::format("  {:<16}{}\n", command.name, command.help);
  text +=
      "\nlatte COMMAND --help lists a command's options; latte --version prints the version.\n"
      "latte --help-markdown prints all options as a page.\n"
      "example: latte generate -m latte-tiny -p \"The harbour at dawn\" -n 64\n";
  return text;
}

std::string command_help(const CommandSpec& command) {
  std::string text = fmt::format("usage: latte {} [OPTIONS]\n{}\n\noptions:\n", command.name, command.help);
  for (const OptionSpec& option : kOptions) {
    if ((option.commands & only(command.command)) == 0) continue;
    std::string left = spellings(option);
    if (!option.value.empty()) left += fmt::format(" {}", option.value);
    text += fmt::format("  {}\n        {}\n", left, option.help);
  }
  text += "\nEvery option may be given as an environment variable: --ctx-size is LATTE_CTX_SIZE.\n";
  return text;
}

std::string options_page() {
  std::string text =
      "# Options\n\nPrinted by `latte --help-markdown`: the table that the program itself parses with.\n";
  for (const CommandSpec& command : kCommands) {
    text += fmt::format("\n## latte {}\n\n{}\n\n| option | value | environment | meaning |\n|---|---|---|---|\n",
                        command.name, command.help);
    for (const OptionSpec& option : kOptions) {
      if ((option.commands & only(command.command)) == 0) continue;
      std::string value;
      for (const char c : option.value) value += c == '|' ? std::string("\\|") : std::string(1, c);
      text +=
          fmt::format("| `{}` | {} | `{}` | {} |\n", spellings(option), value, environment_name(option), option.help);
    }
  }
  return text;
}

}  // namespace latte::cli
