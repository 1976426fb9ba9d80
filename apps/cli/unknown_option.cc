#include "unknown_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "rivals.h"
#include "suggest.h"

namespace latte::cli {
namespace {

/// Options of other programs.
struct Elsewhere {
  std::string_view words;   ///< separated by '|'
  std::string_view option;  ///< what it is here; empty: nothing
  std::string_view answer;  ///< otherwise
};

constexpr Elsewhere kElsewhere[] = {
    {"--draft|--draft-n|--num-speculative-tokens|--speculative-num-steps", "--num-draft-tokens", ""},
    {"--max-new-tokens|--num-predict|--max-len", "--predict", ""},
    {"--n-ctx|--num-ctx|--context|--context-length", "--ctx-size", ""},
    {"--speculative-config|--draft-p-min|--draft-min", "--spec-type", ""},
    {"-ngl|--n-gpu-layers|--gpu-layers|-ngld|--gpu-layers-draft", "",
     "layers are not divided between devices: --device says where the whole model computes, cpu or reference"},
    {"-fa|--flash-attn", "", "the attention never holds all scores at once: there is nothing to switch on"},
    {"-ctv|--cache-type-v", "", "keys and values are one latent row: --cache-type says what it is stored as"},
    {"--mlock|--mmap|--no-mmap", "", "weights are always mapped from their files"},
    {"-b|--batch-size|-ub|--ubatch-size", "", "latte cuts prompts into steps itself"},
    {"-cnv|--conversation|-i|--interactive", "", "a conversation is latte chat"},
    {"--jinja|--chat-template", "", "the model's own chat template is used; --raw leaves it out"},
    {"--grammar|-j|--json-schema", "", "not there yet: what is written cannot be constrained to a grammar"},
    {"--host|--port", "", "there is no server yet"},
    {"--retune", "", "latte tune --crossover measures anew each time"},
};

bool has_option(CommandSet commands, const CommandSpec& command) { return (commands & only(command.command)) != 0; }

/// "latte generate and chat".
std::string names_of(CommandSet commands) {
  std::vector<std::string_view> names;
  for (const CommandSpec& command : command_table()) {
    if (has_option(commands, command)) names.push_back(command.name);
  }
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? fmt::format("latte {}", last) : fmt::format("latte {} and {}", fmt::join(names, ", "), last);
}

/// The option of this command that answers the same question; nothing when there is none.
std::string_view in_its_place(const CommandSpec& command, std::string_view name) {
  for (const auto& rivals : kRivals) {
    if (std::find(rivals.begin(), rivals.end(), name) == rivals.end()) continue;
    for (const OptionSpec& option : option_table()) {
      if (has_option(option.commands, command) && std::find(rivals.begin(), rivals.end(), option.name) != rivals.end())
        return option.name;
    }
  }
  return {};
}

/// Of an option that this command may have or lack.
std::string place_of(const CommandSpec& command, const OptionSpec& option, std::string_view word) {
  if (has_option(option.commands, command)) return fmt::format("; it is {} here", option.name);
  std::string text = fmt::format("; {} {} it", names_of(option.commands),
                                 (option.commands & (option.commands - 1)) == 0 ? "has" : "have");
  if (word != option.name) text += fmt::format(", as {}", option.name);
  if (const std::string_view other = in_its_place(command, option.name); !other.empty())
    text += fmt::format("; here {} takes its place", other);
  return text;
}

const OptionSpec* option_spelled(std::string_view word) {
  const auto options = option_table();
  const auto found =
      std::find_if(options.begin(), options.end(), [word](const OptionSpec& o) { return spells(o, word); });
  return found == options.end() ? nullptr : &*found;
}

std::string hint(const CommandSpec& command, std::string_view word) {
  if (const OptionSpec* option = option_spelled(word); option != nullptr) return place_of(command, *option, word);
  for (const Elsewhere& elsewhere : kElsewhere) {
    const std::vector<std::string_view> words = words_of(elsewhere.words);
    if (std::find(words.begin(), words.end(), word) == words.end()) continue;
    if (elsewhere.option.empty()) return fmt::format("; {}", elsewhere.answer);
    return place_of(command, *option_spelled(elsewhere.option), word);
  }
  std::vector<std::string_view> known = {"--help"};
  for (const OptionSpec& option : option_table()) {
    if (!has_option(option.commands, command)) continue;
    const std::vector<std::string_view> own = spellings(option);
    known.insert(known.end(), own.begin(), own.end());
  }
  const std::string near = suggestion(word, known);
  return near.empty() ? fmt::format("; latte {} --help lists those it has", command.name) : near;
}

}  // namespace

std::string unknown_option(const CommandSpec& command, std::string_view word) {
  return fmt::format("unknown option \"{}\" of latte {}{}", word, command.name, hint(command, word));
}

}  // namespace latte::cli
