#include "api/geometry_file.h"

#include "io/json_file.h"

namespace latte {

Result<ModelConfig> read_geometry(const std::string& path) {
  Result<Json> json = read_json_file(path);
  if (!json.ok()) return json.error();
  if (json->is_object()) json->erase("quantization_config");
  return parse_config(*json, path);
}

}  // namespace latte
