#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "option_table.h"

namespace latte::cli {

/// The options of one call, checked against the table: what is here has the right shape.
class Arguments {
 public:
  /// Reads command-line words, then the environment for what they leave out. Errors are usage errors.
  static Result<Arguments> parse(const CommandSpec& command, std::span<char* const> words);

  bool has(std::string_view name) const { return values_.contains(name); }
  bool flag(std::string_view name) const { return has(name); }
  std::optional<std::string> text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  std::optional<std::int64_t> integer(std::string_view name) const;
  std::optional<std::uint64_t> unsigned_integer(std::string_view name) const;
  std::optional<double> real(std::string_view name) const;
  std::vector<std::string> list(std::string_view name) const;
  /// The word given without an option's name, of those that the command lists.
  const std::string& operand() const { return operand_; }
  bool wants_help() const { return wants_help_; }

 private:
  Status read_environment(const CommandSpec& command);
  Status put(const OptionSpec& option, std::string_view spelling, std::string value);

  std::map<std::string_view, std::vector<std::string>> values_;  // by primary name
  std::string operand_;
  bool wants_help_ = false;
};

}  // namespace latte::cli
