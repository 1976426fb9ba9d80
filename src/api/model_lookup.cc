#include "api/model_lookup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>
#include <vector>

#include "api/hub_cache.h"
#include "base/fail.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

bool holds_model(const fs::path& directory) {
  std::error_code ignored;
  return fs::is_regular_file(directory / "config.json", ignored);
}

std::vector<fs::path> places() {
  std::vector<fs::path> found;
  if (const char* models = std::getenv("LATTE_MODELS"); models != nullptr && *models != '\0')
    found.emplace_back(models);
  found.emplace_back("models");
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  if (!unknown) {
    const fs::path beside = program.parent_path();
    found.push_back(beside.parent_path() / "models");
    found.push_back(beside / "models");
    found.push_back(beside.parent_path() / "share/latte/models");
    // A program in a build folder of a build folder: build/clang/latte.
    found.push_back(beside.parent_path().parent_path() / "models");
  }
  return found;
}

std::set<std::string> names_in(const std::vector<fs::path>& directories) {
  std::set<std::string> names;
  for (const fs::path& directory : directories) {
    std::error_code unreadable;
    for (fs::directory_iterator entry(directory, unreadable), end; !unreadable && entry != end;
         entry.increment(unreadable)) {
      if (holds_model(entry->path())) names.insert(entry->path().filename().string());
    }
  }
  return names;
}

/// A file that belongs to a model folder stands for the folder.
Result<std::string> folder_of_file(const fs::path& file) {
  const std::string name = file.filename().string();
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (name == "config.json" || name == "model.safetensors.index.json") return folder.string();
  if (file.extension() == ".safetensors" && holds_model(folder)) return folder.string();
  if (file.extension() == ".safetensors") {
    return fail(ErrorKind::kNotFound,
                "{}: no config.json beside it, expected the folder of a model: fetch its other files, too",
                file.string());
  }
  return fail(ErrorKind::kUnsupported,
              "{}: is {}, expected a model folder with config.json and safetensors files, or one of these files",
              file.string(), file.extension() == ".gguf" ? "a GGUF file, which latte does not read" : "a file");
}

}  // namespace

Result<std::string> find_model(const std::string& model) {
  if (model.empty())
    return fail(ErrorKind::kInvalidInput, "no model, expected a directory or the name of an embedded model");
  std::error_code ignored;
  if (fs::is_directory(model, ignored)) return model;
  if (fs::exists(model, ignored)) return folder_of_file(model);
  if (is_hub_name(model)) return find_in_hub_cache(model);
  const bool is_name = model.find('/') == std::string::npos && model != "." && model != "..";
  const std::vector<fs::path> looked = places();
  if (is_name) {
    for (const fs::path& place : looked) {
      if (holds_model(place / model)) return (place / model).string();
    }
  }
  std::vector<std::string> shown;
  for (const fs::path& place : looked) shown.push_back(place.string());
  const std::set<std::string> names = names_in(looked);
  if (!is_name)
    return fail(ErrorKind::kNotFound, "model \"{}\": no such directory, expected one with config.json", model);
  return fail(ErrorKind::kNotFound, "model \"{}\": no such directory, nor an embedded model in {}; {}", model,
              fmt::join(shown, ", "),
              names.empty() ? std::string("none is there: run ./quickstart or tools/unpack_models.sh")
                            : fmt::format("there are: {}", fmt::join(names, ", ")));
}

std::vector<std::string> embedded_models() {
  const std::set<std::string> names = names_in(places());
  return {names.begin(), names.end()};
}

}  // namespace latte
