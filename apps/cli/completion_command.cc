#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "commands.h"
#include "option_table.h"
#include "outcome.h"

namespace latte::cli {
namespace {

/// What may follow an option: words, files, folders, or anything.
enum class Follows { kNothing, kWords, kFiles, kFolders, kAnything };

Follows follows(const OptionSpec& option) {
  if (option.kind == ValueKind::kFlag) return Follows::kNothing;
  if (option.kind == ValueKind::kChoice) return Follows::kWords;
  if (option.value.find("DIR") != std::string_view::npos) return Follows::kFolders;
  if (option.value.find("FILE") != std::string_view::npos) return Follows::kFiles;
  return Follows::kAnything;
}

std::vector<const OptionSpec*> options_of(const CommandSpec& command) {
  std::vector<const OptionSpec*> options;
  for (const OptionSpec& option : option_table()) {
    if ((option.commands & only(command.command)) != 0) options.push_back(&option);
  }
  return options;
}

/// Within '...' of a shell.
std::string shell_word(std::string_view text) {
  std::string inside;
  for (const char c : text) inside += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "'" + inside + "'";
}

std::string bash_script() {
  std::string commands, options, values;
  for (const CommandSpec& command : command_table()) {
    commands += fmt::format("{}{}", commands.empty() ? "" : " ", command.name);
    std::string names = fmt::format("{}", fmt::join(words_of(command.operand), " "));
    for (const OptionSpec* option : options_of(command))
      names += fmt::format("{}{}", names.empty() ? "" : " ", fmt::join(spellings(*option), " "));
    options += fmt::format("    {}) words=\"{} --help\" ;;\n", command.name, names);
  }
  for (const OptionSpec& option : option_table()) {
    const std::string pattern = fmt::format("{}", fmt::join(spellings(option), "|"));
    switch (follows(option)) {
      case Follows::kNothing:
        break;
      case Follows::kWords:
        values += fmt::format("    {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", pattern,
                              fmt::join(words_of(option.value), " "));
        break;
      case Follows::kFiles:
        values += fmt::format("    {}) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n", pattern);
        break;
      case Follows::kFolders:
        values += fmt::format("    {}) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n", pattern);
        break;
      case Follows::kAnything:
        values += fmt::format("    {}) return ;;\n", pattern);
        break;
    }
  }
  return fmt::format(
      "# bash completion of latte, made by `latte completion bash`\n"
      "_latte() {{\n  local word=\"${{COMP_WORDS[COMP_CWORD]}}\" before=\"${{COMP_WORDS[COMP_CWORD-1]}}\" words\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"{} --help --version\" -- \"$word\"))\n    return\n  fi\n"
      "  case \"$before\" in\n{}  esac\n"
      "  case \"${{COMP_WORDS[1]}}\" in\n{}    *) return ;;\n  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}}\n"
      "complete -o filenames -F _latte latte\n",
      commands, values, options);
}

std::string zsh_value(const OptionSpec& option) {
  switch (follows(option)) {
    case Follows::kNothing:
      return "";
    case Follows::kWords:
      return fmt::format(":value:({})", fmt::join(words_of(option.value), " "));
    case Follows::kFiles:
      return ":file:_files";
    case Follows::kFolders:
      return ":folder:_files -/";
    case Follows::kAnything:
      return ":value: ";
  }
  return "";
}

std::string zsh_script() {
  std::string commands, cases;
  for (const CommandSpec& command : command_table()) {
    commands += fmt::format("    {}\n", shell_word(fmt::format("{}:{}", command.name, command.help)));
    cases += fmt::format("    {}) _arguments -s \\\n", command.name);
    if (!command.operand.empty())
      cases += fmt::format("      '1:word:({})' \\\n", fmt::join(words_of(command.operand), " "));
    for (const OptionSpec* option : options_of(command)) {
      std::string help;
      for (const char c : option->help)
        help += c == '[' || c == ']' || c == ':' ? std::string{'\\', c} : std::string(1, c);
      for (const std::string_view spelling : spellings(*option))
        cases += fmt::format("      {} \\\n", shell_word(fmt::format("{}[{}]{}", spelling, help, zsh_value(*option))));
    }
    cases += "      '--help[lists the options]' ;;\n";
  }
  return fmt::format(
      "#compdef latte\n# zsh completion of latte, made by `latte completion zsh`\n"
      "_latte() {{\n  local -a commands\n  commands=(\n{}  )\n"
      "  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=${{words[2]}}\n  shift words\n  (( CURRENT-- ))\n"
      "  case $command in\n{}  esac\n}}\n"
      "if [ \"$funcstack[1]\" = _latte ]; then _latte \"$@\"; else compdef _latte latte; fi\n",
      commands, cases);
}

std::string fish_script() {
  std::string text =
      "# fish completion of latte, made by `latte completion fish`\ncomplete -c latte -f\n"
      "complete -c latte -n __fish_use_subcommand -l help -d 'lists the commands'\n"
      "complete -c latte -n __fish_use_subcommand -l version -d 'prints the version'\n";
  for (const CommandSpec& command : command_table()) {
    text +=
        fmt::format("complete -c latte -n __fish_use_subcommand -a {} -d {}\n", command.name, shell_word(command.help));
    const std::string when = fmt::format("'__fish_seen_subcommand_from {}'", command.name);
    if (!command.operand.empty())
      text += fmt::format("complete -c latte -n {} -a '{}'\n", when, fmt::join(words_of(command.operand), " "));
    for (const OptionSpec* option : options_of(command)) {
      std::string names;
      for (const std::string_view spelling : spellings(*option)) {
        const bool is_long = spelling.starts_with("--");
        const std::string_view bare = spelling.substr(is_long ? 2 : 1);
        names += fmt::format(" -{} {}", is_long ? "l" : bare.size() == 1 ? "s" : "o", bare);
      }
      std::string value;
      if (follows(*option) == Follows::kWords)
        value = fmt::format(" -x -a '{}'", fmt::join(words_of(option->value), " "));
      if (follows(*option) == Follows::kFiles) value = " -r -F";
      if (follows(*option) == Follows::kFolders) value = " -x -a '(__fish_complete_directories)'";
      if (follows(*option) == Follows::kAnything) value = " -x";
      text += fmt::format("complete -c latte -n {}{}{} -d {}\n", when, names, value, shell_word(option->help));
    }
  }
  return text;
}

}  // namespace

int run_completion(const Arguments& arguments) {
  if (arguments.operand() == "bash") return finish_with(bash_script());
  return finish_with(arguments.operand() == "zsh" ? zsh_script() : fish_script());
}

}  // namespace latte::cli
