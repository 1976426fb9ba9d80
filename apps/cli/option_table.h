#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace latte::cli {

/// The commands, in the order help lists them.
enum class Command : std::uint8_t {
  kGenerate,
  kChat,
  kLogits,
  kEval,
  kPlan,
  kInspect,
  kQuantize,
  kBench,
  kTune,
  kDoctor,
  kTokenize,
  kDetokenize,
  kApplyTemplate,
  kCompletion,
  kMan,
};

struct CommandSpec {
  Command command;
  std::string_view name;
  std::string_view help;
  std::string_view operand = "";  ///< words, separated by '|', of which one is given without an option's name
};

/// What a value must look like.
enum class ValueKind : std::uint8_t { kFlag, kText, kList, kInteger, kReal, kChoice };

/// A set of commands, one bit each.
using CommandSet = unsigned;
constexpr CommandSet only(Command command) { return 1u << static_cast<unsigned>(command); }

/// One option of the program. Parsing, help, environment names and the documentation page all come from this table.
struct OptionSpec {
  std::string_view name;     ///< primary spelling, "--predict"
  std::string_view aliases;  ///< other spellings, separated by spaces
  ValueKind kind = ValueKind::kText;
  std::string_view value;  ///< placeholder in help; for kChoice the words, separated by '|'
  std::string_view help;
  CommandSet commands = 0;
  double least = 0;  ///< kInteger and kReal: limits, both included
  double most = 0;
  double least_above_zero = 0;  ///< kReal: the smallest value but 0
  std::string_view range = "";  ///< kReal: the limits in words, where they are not just least and most
};

std::span<const CommandSpec> command_table();
std::span<const OptionSpec> option_table();

/// The environment name of an option: LATTE_ and its primary spelling, "LATTE_CTX_SIZE".
std::string environment_name(const OptionSpec& option);

/// The name and the aliases.
std::vector<std::string_view> spellings(const OptionSpec& option);

/// The words of "a|b|c".
std::vector<std::string_view> words_of(std::string_view choices);

/// True when `spelling` is the option's name or an alias.
bool spells(const OptionSpec& option, std::string_view spelling);

/// Help of the program, of one command, and the whole table as a Markdown page.
std::string program_help();
std::string command_help(const CommandSpec& command);
std::string options_page();

}  // namespace latte::cli
