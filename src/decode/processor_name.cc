#include "decode/processor_name.h"

#include <fstream>
#include <string_view>

namespace latte {

std::string labelled_value(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    const std::size_t colon = line.find(':');
    const std::size_t first = colon == std::string::npos ? colon : line.find_first_not_of(" \t", colon + 1);
    if (first != std::string::npos) return line.substr(first);
  }
  return "";
}

std::string processor_name() {
  for (const std::string_view key : {"model name", "Model", "cpu model"}) {
    if (std::string name = labelled_value("/proc/cpuinfo", key); !name.empty()) return name;
  }
  return "";
}

}  // namespace latte
