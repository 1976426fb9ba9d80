#include "support/family_golden.h"

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "io/file_map.h"
#include "io/safetensors.h"

namespace latte::test {

Result<std::vector<std::string>> golden_arrays(const std::string& path) {
  Result<FileMap> file = FileMap::open(path);
  if (!file.ok()) return file.error();
  Result<SafetensorsTable> table = parse_safetensors(file->bytes(), path);
  if (!table.ok()) return table.error();
  std::vector<std::string> names;
  for (const TensorInfo& tensor : table->tensors) names.emplace_back(tensor.name);
  return names;
}

Result<GoldenGreedy> read_golden_greedy(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(ErrorKind::kNotFound, "{}: cannot be opened, expected a golden.json", path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  // Python's word where a measure does not apply; no JSON has it.
  const std::string no_number = ": Infinity";
  for (std::size_t at; (at = text.find(no_number)) != std::string::npos;) text.replace(at, no_number.size(), ": null");
  try {
    const nlohmann::json golden = nlohmann::json::parse(text);
    const nlohmann::json& greedy = golden.at("greedy");
    return GoldenGreedy{.prompt = greedy.at("prompt"),
                        .ids = greedy.at(greedy.contains("ids") ? "ids" : "continuation")};
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorKind::kInvalidInput, "{}: {}", path, error.what());
  }
}

}  // namespace latte::test
