#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/error.h"

namespace latte::cli {

/// Ids of "1,2,3", or of "@file.json": a JSON list of numbers, or text of numbers between commas and white space.
Result<std::vector<std::int32_t>> parse_token_ids(const std::string& argument);

/// Prints an error of parse_token_ids and gives the exit code: a list that is not one is misuse, a file's content not.
int ids_refused(const std::string& argument, const Error& error);

/// Rows per step of "48,1x8". Errors: anything else than n or nxtimes with positive numbers, more than 2^24 rows in
/// all.
Result<std::vector<int>> parse_steps(const std::string& argument);

/// A whole file, "-" for standard input. Errors name the path; files beyond 1 GiB are refused.
Result<std::string> read_file(const std::string& path);

}  // namespace latte::cli
