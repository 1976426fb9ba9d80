#pragma once

#include <string>
#include <string_view>

#include "latte/bench.h"

namespace latte::cli {

/// The report in one of the forms "md", "csv", "json", "jsonl", "sql", "svg".
std::string bench_text(const BenchReport& report, std::string_view form);

}  // namespace latte::cli
