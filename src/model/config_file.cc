#include "model/config_file.h"

#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "io/file_map.h"

namespace latte {

Result<ModelConfig> load_config(const std::string& directory) {
  const std::filesystem::path folder(directory);
  const std::string config_path = (folder / "config.json").string();
  if (std::error_code code; std::filesystem::exists(folder, code) && !name_exists(config_path)) {
    return fail(
        ErrorKind::kNotFound,
        "{}: no config.json in it, expected a model folder: config.json, *.safetensors and the tokenizer's files "
        "as they are published",
        directory);
  }
  const Result<Json> json = read_json_file(config_path);
  if (!json) return json.error();
  Result<ModelConfig> config = parse_config(*json, config_path);
  if (!config) return config;
  const std::string generation_path = (folder / "generation_config.json").string();
  if (!name_exists(generation_path)) return config;
  const Result<Json> generation = read_json_file(generation_path);
  if (!generation) return generation.error();
  if (const Status applied = apply_generation_config(*generation, generation_path, *config); !applied)
    return applied.error();
  return config;
}

}  // namespace latte
