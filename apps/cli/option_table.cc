#include "option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>

namespace latte::cli {
namespace {

constexpr CommandSet kRuns = only(Command::kGenerate) | only(Command::kLogits);
constexpr CommandSet kChat = only(Command::kChat);
constexpr CommandSet kWrites = only(Command::kGenerate) | kChat;
constexpr CommandSet kEval = only(Command::kEval);
constexpr CommandSet kDoctor = only(Command::kDoctor);
constexpr CommandSet kBench = only(Command::kBench);
constexpr CommandSet kSessions = kRuns | kChat | kEval | only(Command::kInspect);
constexpr CommandSet kOpens = kSessions | kBench;
constexpr CommandSet kTextTools = only(Command::kTokenize) | only(Command::kDetokenize) | only(Command::kApplyTemplate);
constexpr CommandSet kGenerate = only(Command::kGenerate);
constexpr CommandSet kLogits = only(Command::kLogits);
constexpr CommandSet kPlan = only(Command::kPlan);
constexpr CommandSet kTune = only(Command::kTune);
constexpr CommandSet kQuantize = only(Command::kQuantize);
constexpr CommandSet kMeasured = kOpens | kPlan | kTune;
constexpr CommandSet kAll = kMeasured | kTextTools | kQuantize;

constexpr double kMostRows = 1 << 30;
constexpr double kSmallest = std::numeric_limits<double>::min();
constexpr double kMostSeed = 18446744073709551615.0;

using enum ValueKind;

constexpr std::array kCommands = {
    CommandSpec{Command::kGenerate, "generate", "write text after a prompt"},
    CommandSpec{Command::kChat, "chat",
                "a conversation with a warm cache; /help lists its commands. Exit code: 0; 1 when standard input is no "
                "terminal "
                "and a turn or a command failed, after all lines were read; 130 interrupted"},
    CommandSpec{Command::kLogits, "logits", "write the logits of given ids to a .npy file"},
    CommandSpec{Command::kEval, "eval", "how well the model foretells a text: bits per byte, perplexity"},
    CommandSpec{Command::kPlan, "plan", "what the arithmetic says: cache bytes, weights, which form when"},
    CommandSpec{Command::kInspect, "inspect", "what a model folder holds and what is used of it"},
    CommandSpec{Command::kQuantize, "quantize", "write a model with smaller matrices as a folder that opens at once"},
    CommandSpec{Command::kBench, "bench", "how fast a model reads, writes and verifies, against this machine's memory"},
    CommandSpec{Command::kTune, "tune", "measure what chooses between the forms of the attention on this machine"},
    CommandSpec{Command::kDoctor, "doctor", "what this machine has, how fast it is and what is missing"},
    CommandSpec{Command::kTokenize, "tokenize", "ids of a text"},
    CommandSpec{Command::kDetokenize, "detokenize", "text of ids"},
    CommandSpec{Command::kApplyTemplate, "apply-template", "the prompt a chat template makes of messages"},
    CommandSpec{Command::kCompletion, "completion", "a script that completes latte's words in a shell",
                "bash|zsh|fish"},
    CommandSpec{Command::kMan, "man", "the manual page, as roff: latte man | man -l -"},
};

constexpr std::array kOptions = {
    OptionSpec{"--model", "-m", kText, "DIR|NAME",
               "model folder or a file in it, the name of an embedded model, or org/name in the Hugging Face cache",
               kAll},
    OptionSpec{"--config", "", kText, "FILE", "a config.json instead of a model folder", kPlan | kBench | kTune},

    OptionSpec{"--prompt", "-p", kText, "TEXT", "the text", kGenerate | only(Command::kTokenize)},
    OptionSpec{
        "--file", "-f", kText, "FILE|-",
        "read the text (apply-template: the messages, JSON) from a file, - for standard input; in eval and bench "
        "NUL bytes part documents",
        kGenerate | kEval | kBench | only(Command::kTokenize) | only(Command::kApplyTemplate)},
    OptionSpec{"--ids", "", kText, "LIST|@FILE", "token ids: 1,2,3 or @file.json", kRuns | only(Command::kDetokenize)},
    OptionSpec{"--system-prompt", "-sys", kText, "TEXT", "first message, for models with a chat template", kWrites},
    OptionSpec{"--raw", "", kFlag, "", "take the prompt as text, without a chat template", kWrites},
    OptionSpec{"--predict", "-n --n-predict --max-tokens", kInteger, "N",
               "most tokens to generate (default, and -1: until a stop token or the context's end)", kWrites, -1,
               kMostRows},
    OptionSpec{"--reverse-prompt", "-r --stop", kList, "TEXT",
               "stop before this text, or at the special token of this name; may be given several times", kWrites},
    OptionSpec{"--ignore-eos", "", kFlag, "",
               "do not stop at the model's stop tokens; they may still come (forbid them with -l eos-inf)", kWrites},

    OptionSpec{
        "--prompt-cache-file", "--prompt-cache", kText, "FILE",
        "keep the session here: read it if it is there, reuse what the prompt shares with it, save it at the end",
        kGenerate},

    OptionSpec{"--seed", "-s", kInteger, "N", "seed of the sampling noise (default: random, shown at the end)", kWrites,
               0, kMostSeed},
    OptionSpec{"--temp", "--temperature", kReal, "X",
               "0 is greedy (default: the model's generation_config.json, else 0)", kWrites, 0, 100, 1e-6,
               "0 (greedy) or a number from 1e-6 to 100"},
    OptionSpec{"--top-k", "", kInteger, "N", "keep the N most likely tokens, 0 all", kWrites, 0, kMostRows},
    OptionSpec{"--top-p", "", kReal, "X", "keep the most likely tokens up to this probability, 1 all", kWrites,
               kSmallest, 1, kSmallest, "a number above 0 and up to 1"},
    OptionSpec{"--min-p", "", kReal, "X", "keep tokens at least X times as likely as the best, 0 all", kWrites, 0, 1},

    OptionSpec{"--repeat-penalty", "--repetition-penalty", kReal, "X",
               "divide the logits of recent tokens, prompt included, by X (negative ones: multiply), 1 none", kWrites,
               0.01, 100, 0.01},
    OptionSpec{"--repeat-last-n", "--repetition-context-size", kInteger, "N",
               "tokens before the new one that --repeat-penalty looks at, 0 none, -1 all (default 64)", kWrites, -1,
               kMostRows},
    OptionSpec{"--presence-penalty", "", kReal, "X",
               "subtract X from the logits of tokens generated so far; the prompt does not count", kWrites, -100, 100},
    OptionSpec{"--frequency-penalty", "", kReal, "X",
               "subtract X for every time the token was generated; the prompt does not count", kWrites, -100, 100},
    OptionSpec{"--logit-bias", "-l", kList, "ID+X|ID-X|ID=X",
               "add X to a token's logit, -inf forbids it; ID eos is every stop token; may be given several times or "
               "with commas between",
               kWrites},
    OptionSpec{"--logprobs", "", kInteger, "N",
               "with --json: log probability of each token and of the N likeliest at its place, by the model alone: "
               "before penalties, temperature and filters",
               kGenerate, 0, 20},

    OptionSpec{"--spec-type", "", kChoice, "none|mtp|draft|lookup|auto",
               "who guesses tokens ahead; never changes the text (default auto)", kWrites | kBench},
    OptionSpec{"--draft-model", "-md --model-draft", kText, "DIR|NAME",
               "a small model of the same vocabulary that drafts", kWrites | kBench},
    OptionSpec{
        "--num-draft-tokens", "--spec-draft-n-max --max-draft --draft-max", kText, "N|auto",
        "drafts per round (auto: what is measured to be fastest, 0 to 4 for mtp, 0 to 8 for draft; up to 8 for lookup)",
        kWrites | kBench},

    OptionSpec{"--output", "-o", kText, "FILE", "where the logits go (.npy, float32 [T, vocab])", kLogits},
    OptionSpec{"--output", "-o", kText, "DIR", "the folder to write, a new or an empty one", kQuantize},
    OptionSpec{"--steps", "", kText, "LIST", "rows per step, n or nxtimes: 48,1x8 (default: one step)", kLogits},
    OptionSpec{"--redo", "", kInteger, "K", "after every step of more than K rows rewind K rows and feed them again",
               kLogits, 0, kMostRows},
    OptionSpec{"--mtp", "", kText, "FILE", "also write the MTP layer's logits (.npy, [T-1, vocab])", kLogits},
    OptionSpec{"--role", "", kChoice, "auto|prompt|generated", "numeric role of the steps (default auto)", kLogits},

    OptionSpec{"--n-prompt", "-p", kText, "LIST",
               "rows of prompts to read (default 512; 0 none); a list is a,b or first-last+step or first-last*mult",
               kBench},
    OptionSpec{"--n-gen", "-n", kText, "LIST", "tokens to generate (default 128; 0 none)", kBench},
    OptionSpec{"--n-verify", "-nv --verify", kText, "LIST",
               "rows of verify steps, 1 to 16 (default none); with --attention new rows (default 1,2,4,8)", kBench},
    OptionSpec{"--n-depth", "-d", kText, "LIST", "rows in the cache before a test (default 0; --attention 4096)",
               kBench},
    OptionSpec{"--repetitions", "-r", kInteger, "N", "timed visits to each test (default 5)", kBench, 1, 10000},
    OptionSpec{"--output-format", "-o --output", kChoice, "md|csv|json|jsonl|sql|svg",
               "what to print (default md, a Markdown table)", kBench},
    OptionSpec{"--random-weights", "", kFlag, "", "with --config: measure weights made on the spot, never stored",
               kBench},
    OptionSpec{"--layers", "", kInteger, "N", "with --config: only the first N layers, which the output says", kBench,
               1, kMostRows},
    OptionSpec{"--spec", "", kFlag, "",
               "also generate with the drafter of --spec-type, beside plain decoding, replaying the text of -f",
               kBench},
    OptionSpec{"--attention", "", kFlag, "",
               "one attention call instead of whole steps: keys and values kept expanded, materialised, absorbed "
               "(--mla-path: that form alone)",
               kBench},

    OptionSpec{"--ctx-size", "-c --max-kv-size --max-model-len", kInteger, "N",
               "tokens a session may hold, 0: the model's length (plan: the length to size the cache for)",
               kSessions | kPlan, 0, kMostRows},
    OptionSpec{"--threads", "-t", kInteger, "N", "threads, 0: the physical cores this process may use",
               kMeasured | kDoctor | kQuantize, 0, 1024},
    OptionSpec{"--threads-batch", "-tb", kInteger, "N",
               "threads for prompt steps; there is one pool, which gets the larger of this and --threads", kOpens, 0,
               1024},
    OptionSpec{"--device", "-dev", kChoice, "auto|cpu|reference|cuda|mlx",
               "where to compute (default auto); cuda and mlx are refused by name until they are there", kMeasured},
    OptionSpec{
        "--isa", "", kChoice, "auto|scalar|avx2|avx512|avx512_bf16|avx512_vnni|amx|neon",
        "instruction set of the cpu device (auto: the fastest by rates measured once and stored, else by a table of "
        "processors: results may differ in their last bits between the two); what this build or processor lacks "
        "is refused by name",
        kMeasured | kDoctor},
    OptionSpec{"--dtype", "", kChoice, "auto|f32|bf16",
               "what to compute in (auto: f32 for an f32 checkpoint, else bf16)", kMeasured},
    OptionSpec{"--quantize", "", kChoice, "none|q8|q4|q4:q8-attn",
               "what matrices become at load: groups of 8 or 4 bits (default none); a folder that latte quantize wrote "
               "needs no word (none is no word), and takes no other than its own",
               kOpens},
    OptionSpec{"--quantize", "", kChoice, "q8|q4|q4:q8-attn",
               "what matrices become: groups of 8 or 4 bits, q4:q8-attn 4 with the attention in 8; the head is in 8",
               kQuantize},
    OptionSpec{
        "--cache-type", "-ctk --cache-type-k", kChoice, "auto|bf16|f32|f16|q8|q8_0|fp8",
        "what cached rows are stored as (auto: f32 where f32 is computed in, else bf16); fp8 is refused by name until "
        "it is there",
        kMeasured},
    OptionSpec{"--kv-bits", "", kChoice, "8|16|32", "the same by width: q8, bf16, f32", kMeasured},
    OptionSpec{"--mla-path", "", kChoice, "auto|absorbed|materialised|formula",
               "form of the attention; forcing one is a diagnostic", kOpens | kPlan},
    OptionSpec{
        "--no-calibration", "", kFlag, "",
        "choose the form of prompt steps by the formula alone, and the instruction set by a table of processors: no "
        "stored profile is read, nothing is measured",
        kOpens | kPlan},
    OptionSpec{"--numerics", "", kChoice, "fast|pinned", "promise for prompts (default fast)", kOpens},

    OptionSpec{"--new", "", kInteger, "L", "decide one step: its new rows", kPlan, 1, kMostRows},
    OptionSpec{"--cached", "", kInteger, "T", "decide one step: cached rows, the new ones included", kPlan, 1,
               kMostRows},

    OptionSpec{"--plot", "", kText, "FILE", "draw the crossover over T, by formula and by profile, as SVG", kPlan},
    OptionSpec{"--crossover", "", kFlag, "",
               "measure both forms, store the profile, and show what the choice by formula and by profile costs",
               kTune},
    OptionSpec{"--seconds", "", kReal, "X",
               "about how long timing the grid of L and T may take (default 60; 0: the profile alone)", kTune, 0,
               86400},

    OptionSpec{"--special", "", kFlag, "", "special tokens written in the text match", only(Command::kTokenize)},
    OptionSpec{"--bos", "", kFlag, "", "begin with the BOS token", only(Command::kTokenize)},
    OptionSpec{"--tools", "", kText, "FILE|-", "tools for the template (JSON list)", only(Command::kApplyTemplate)},
    OptionSpec{"--kwargs", "--chat-template-kwargs", kText, "JSON", "variables for the template (JSON object)",
               kWrites | only(Command::kApplyTemplate)},
    OptionSpec{"--history", "", kText, "FILE", "keep the lines typed at a terminal in this file (default: nowhere)",
               kChat},

    OptionSpec{"--json", "", kFlag, "", "print one JSON value (chat: one a turn and command; bench: -o json)",
               kWrites | kEval | kBench | kTune | kDoctor | kPlan | kQuantize | only(Command::kInspect) |
                   only(Command::kTokenize)},
    OptionSpec{"--verbose", "-v", kFlag, "", "tell what was reused, and the form of each kind of step with the reason",
               kWrites},
    OptionSpec{"--log-file", "", kText, "FILE", "append what goes to standard error to this file, too (but progress)",
               kAll | kDoctor},
    OptionSpec{"--progress", "", kFlag, "", "show progress even when standard error is no terminal",
               kOpens | kTune | kQuantize},
    OptionSpec{"--no-progress", "", kFlag, "", "never show progress", kOpens | kTune | kQuantize},
};

std::vector<std::string_view> parts(std::string_view text, char border) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = text.find(border);
    all.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
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

std::vector<std::string_view> spellings(const OptionSpec& option) {
  std::vector<std::string_view> all = parts(option.aliases, ' ');
  all.insert(all.begin(), option.name);
  return all;
}

std::vector<std::string_view> words_of(std::string_view choices) { return parts(choices, '|'); }

bool spells(const OptionSpec& option, std::string_view spelling) {
  const std::vector<std::string_view> all = spellings(option);
  return std::find(all.begin(), all.end(), spelling) != all.end();
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
  std::string text = fmt::format("usage: latte {}{}{} [OPTIONS]\n{}\n\noptions:\n", command.name,
                                 command.operand.empty() ? "" : " ", command.operand, command.help);
  for (const OptionSpec& option : kOptions) {
    if ((option.commands & only(command.command)) == 0) continue;
    std::string left = fmt::format("{}", fmt::join(spellings(option), ", "));
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
      text += fmt::format("| `{}` | {} | `{}` | {} |\n", fmt::join(spellings(option), ", "), value,
                          environment_name(option), option.help);
    }
  }
  return text;
}

}  // namespace latte::cli
