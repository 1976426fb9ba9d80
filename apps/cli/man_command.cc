#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "commands.h"
#include "latte/version.h"
#include "option_table.h"
#include "outcome.h"

namespace latte::cli {
namespace {

/// Text as roff shows it: a hyphen that can be copied, no escape or request by accident.
std::string plain(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '-') {
      escaped += "\\-";
    } else if (c == '\\') {
      escaped += "\\e";
    } else if ((c == '.' || c == '\'') && i == 0) {
      escaped += fmt::format("\\&{}", c);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string option_entry(const OptionSpec& option) {
  std::string names;
  for (const std::string_view spelling : spellings(option))
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", plain(spelling));
  if (!option.value.empty()) names += fmt::format(" \\fI{}\\fR", plain(option.value));
  return fmt::format(".TP\n{}\n{}\n", names, plain(option.help));
}

std::string manual() {
  std::string text = fmt::format(
      ".TH LATTE 1 \"\" \"latte {}\" \"User Commands\"\n.SH NAME\nlatte \\- runs language models with Multi\\-head "
      "Latent "
      "Attention\n.SH SYNOPSIS\n.B latte\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n"
      "Each step computes the cheaper of the two equal forms of the attention, and drafted tokens make it faster "
      "without "
      "changing the text.\nResults go to standard output, everything else to standard error.\n.SH COMMANDS\n",
      kVersion);
  for (const CommandSpec& command : command_table()) {
    text += fmt::format(".SS latte {}{}{}\n{}\n", plain(command.name), command.operand.empty() ? "" : " ",
                        plain(command.operand), plain(command.help));
    for (const OptionSpec& option : option_table()) {
      if ((option.commands & only(command.command)) != 0) text += option_entry(option);
    }
  }
  text +=
      ".SH ENVIRONMENT\nEvery option may be given as a variable: LATTE_ and its first name in capitals, so that "
      "\\fB\\-\\-ctx\\-size\\fR is LATTE_CTX_SIZE.\nThe command line comes first.\n.TP\nLATTE_MODELS\nfolder in which "
      "models are looked up by name\n"
      ".SH EXIT STATUS\n0 success, 1 the work failed (one line on standard error says why), 2 usage, 130 interrupted.\n"
      ".SH EXAMPLES\n.nf\nlatte generate \\-m latte\\-tiny \\-p \"The harbour at dawn\" \\-n 64\nlatte chat \\-m "
      "latte\\-tiny\nlatte completion bash > ~/.local/share/bash\\-completion/completions/latte\n.fi\n";
  return text;
}

}  // namespace

int run_man(const Arguments&) { return finish_with(manual()); }

}  // namespace latte::cli
