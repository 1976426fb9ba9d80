#include "support/golden.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "io/file_map.h"
#include "io/safetensors.h"

namespace latte::test {
namespace {

/// Elements of one array, copied out of the file.
template <class T>
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<T> values;
};

template <class T>
Result<Array<T>> read_array(const std::string& path, const std::string& name, DType dtype) {
  Result<FileMap> file = FileMap::open(path);
  if (!file.ok()) return file.error();
  Result<SafetensorsTable> table = parse_safetensors(file->bytes(), path);
  if (!table.ok()) return table.error();
  for (const TensorInfo& tensor : table->tensors) {
    if (tensor.name != name) continue;
    if (tensor.dtype != dtype) {
      return fail(ErrorKind::kInvalidInput, "{}: golden array \"{}\" has dtype {}, expected {}", path, name,
                  dtype_name(tensor.dtype), dtype_name(dtype));
    }
    Array<T> array{tensor.shape, std::vector<T>(tensor.bytes / sizeof(T))};
    std::memcpy(array.values.data(), file->bytes().data() + tensor.offset, tensor.bytes);
    return array;
  }
  return fail(ErrorKind::kNotFound, "{}: no golden array \"{}\"", path, name);
}

std::vector<GoldenTop> tops(const nlohmann::json& json) {
  const auto ids = json.at("ids").get<std::vector<std::vector<std::int32_t>>>();
  const auto logits = json.at("logits").get<std::vector<std::vector<double>>>();
  std::vector<GoldenTop> result;
  for (std::size_t i = 0; i < std::min(ids.size(), logits.size()); ++i) result.push_back({ids[i], logits[i]});
  return result;
}

}  // namespace

Result<GoldenMatrix> read_golden_matrix(const std::string& path, const std::string& name) {
  Result<Array<float>> array = read_array<float>(path, name, DType::kF32);
  if (!array.ok()) return array.error();
  GoldenMatrix matrix;
  matrix.cols = array->shape.empty() ? 1 : array->shape.back();
  matrix.values = std::move(array->values);
  matrix.rows = matrix.cols == 0 ? 0 : static_cast<std::int64_t>(matrix.values.size()) / matrix.cols;
  return matrix;
}

Result<std::vector<std::int32_t>> read_golden_ids(const std::string& path, const std::string& name) {
  Result<Array<std::int32_t>> array = read_array<std::int32_t>(path, name, DType::kI32);
  if (!array.ok()) return array.error();
  return std::move(array->values);
}

bool has_golden(const std::string& path, const std::string& name) {
  Result<FileMap> file = FileMap::open(path);
  if (!file.ok()) return false;
  Result<SafetensorsTable> table = parse_safetensors(file->bytes(), path);
  return table.ok() && std::any_of(table->tensors.begin(), table->tensors.end(),
                                   [&](const TensorInfo& tensor) { return tensor.name == name; });
}

Result<std::vector<GoldenPrompt>> read_golden_prompts(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(ErrorKind::kNotFound, "{}: cannot be opened, expected a golden.json", path);
  try {
    std::vector<GoldenPrompt> prompts;
    const nlohmann::json golden = nlohmann::json::parse(file);
    for (const nlohmann::json& prompt : golden.at("prompts")) {
      prompts.push_back(
          {.text = prompt.at("text"),
           .ids = prompt.at("ids"),
           .top5 = tops(prompt.at("top5")),
           .greedy = prompt.at("greedy"),
           .greedy_text = prompt.at("greedy_text"),
           .mtp_next = prompt.contains("mtp_next") ? prompt.at("mtp_next").get<std::vector<std::int32_t>>()
                                                   : std::vector<std::int32_t>{},
           .mtp_top5 = prompt.contains("mtp_top5") ? tops(prompt.at("mtp_top5")) : std::vector<GoldenTop>{}});
    }
    return prompts;
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::kInvalidInput, "{}: {}", path, error.what());
  }
}

std::optional<std::string> test_data_folder() {
  const char* folder = std::getenv("LATTE_TEST_DATA");
  if (folder == nullptr || *folder == '\0') return std::nullopt;
  return folder;
}

}  // namespace latte::test
