#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "latte/error.h"

namespace latte::test {

/// A float array of a golden file; one-dimensional arrays have one row.
struct GoldenMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> values;

  std::span<const float> row(std::int64_t i) const {
    return {values.data() + i * cols, static_cast<std::size_t>(cols)};
  }
};

/// Arrays of a golden.safetensors, read by name. Errors name the file and the array.
Result<GoldenMatrix> read_golden_matrix(const std::string& path, const std::string& name);
Result<std::vector<std::int32_t>> read_golden_ids(const std::string& path, const std::string& name);
/// Whether the file is there and holds the array.
bool has_golden(const std::string& path, const std::string& name);

/// The five largest logits of a position, best first.
struct GoldenTop {
  std::vector<std::int32_t> ids;
  std::vector<double> logits;
};

/// One prompt of a golden.json of latte-tiny.
struct GoldenPrompt {
  std::string text;
  std::vector<std::int32_t> ids;     ///< BOS first
  std::vector<GoldenTop> top5;       ///< of every position of `ids`
  std::vector<std::int32_t> greedy;  ///< 64 ids that follow
  std::string greedy_text;
  std::vector<std::int32_t> mtp_next;  ///< the token each slot of the MTP layer is given
  std::vector<GoldenTop> mtp_top5;
};

Result<std::vector<GoldenPrompt>> read_golden_prompts(const std::string& path);

/// The folder that environment variable LATTE_TEST_DATA names (it holds models/ and data/), or nothing.
std::optional<std::string> test_data_folder();

}  // namespace latte::test
