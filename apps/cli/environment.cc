#include "environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "option_table.h"
#include "outcome.h"
#include "suggest.h"

namespace latte::cli {
namespace {

constexpr std::string_view kPrefix = "LATTE_";

/// Read beside options: where models lie; by tools/setup.sh, by tests, by tools/mutate.py.
constexpr std::string_view kOthers[] = {"LATTE_MODELS", "LATTE_WERROR", "LATTE_TEST_DATA", "LATTE_MUTATION"};

}  // namespace

std::vector<std::string> unknown_variables(std::span<const std::string_view> environment) {
  std::vector<std::string> known(std::begin(kOthers), std::end(kOthers));
  for (const OptionSpec& option : option_table()) known.push_back(environment_name(option));
  std::vector<std::string_view> stems;  // the part that can be mistyped
  for (const std::string& name : known) stems.push_back(std::string_view(name).substr(kPrefix.size()));
  std::vector<std::string> lines;
  for (const std::string_view entry : environment) {
    const std::string_view name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kPrefix) || std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string_view near = nearest(name.substr(kPrefix.size()), stems);
    lines.push_back(fmt::format("{} in the environment is not read: no option has this name{}", name,
                                near.empty() ? "; latte --help-markdown lists those there are"
                                             : fmt::format(" (did you mean \"{}{}\"?)", kPrefix, near)));
  }
  return lines;
}

void warn_of_unknown_variables() {
  std::vector<std::string_view> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (const std::string& line : unknown_variables(environment)) warn(line);
}

}  // namespace latte::cli
