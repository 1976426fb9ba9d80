#include "support/test_model.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "support/golden.h"

namespace latte::test {

std::optional<std::string> model_folder(const std::string& name) {
  std::vector<std::string> places;
  if (const char* models = std::getenv("LATTE_MODELS"); models != nullptr) places.push_back(models);
  places.push_back(std::string(LATTE_SOURCE_DIR) + "/models");
  if (const auto data = test_data_folder(); data.has_value()) places.push_back(*data + "/models");
  for (const std::string& place : places) {
    if (std::filesystem::exists(place + "/" + name + "/config.json")) return place + "/" + name;
  }
  return std::nullopt;
}

std::optional<std::string> family_folder(const std::string& name) {
  const std::string committed = std::string(LATTE_SOURCE_DIR) + "/tests/data/families/" + name;
  if (std::filesystem::exists(committed)) return committed;
  const auto data = test_data_folder();
  if (!data.has_value()) return std::nullopt;
  return *data + "/models/families/" + name;
}

}  // namespace latte::test
