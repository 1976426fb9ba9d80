#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "latte/error.h"

namespace latte::test {

/// Names of every array of a family's golden.safetensors, in the file's order.
Result<std::vector<std::string>> golden_arrays(const std::string& path);

/// The greedy text of a family's golden.json.
struct GoldenGreedy {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> ids;  ///< that follow
};

Result<GoldenGreedy> read_golden_greedy(const std::string& path);

}  // namespace latte::test
