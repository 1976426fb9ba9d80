#include "api/hub_cache.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/fail.h"

namespace latte {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

fs::path hub_folder() {
  if (const std::string hub = variable("HF_HUB_CACHE"); !hub.empty()) return hub;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? fs::path(variable("HOME")) / ".cache" : fs::path(cache)) / "huggingface" / "hub";
}

bool is_plain_name(std::string_view part) {
  return !part.empty() && part.front() != '.' && part.size() < 128 &&
         std::all_of(part.begin(), part.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
}

}  // namespace

bool is_hub_name(std::string_view model) {
  const std::size_t slash = model.find('/');
  return slash != std::string_view::npos && is_plain_name(model.substr(0, slash)) &&
         is_plain_name(model.substr(slash + 1));
}

Result<std::string> find_in_hub_cache(std::string_view model) {
  std::string folder = "models--" + std::string(model);
  folder.replace(folder.find('/'), 1, "--");
  const fs::path home = hub_folder() / folder;
  const std::string fetch = fmt::format("fetch it with \"hf download {0}\" (or huggingface-cli download {0})", model);
  std::error_code ignored;
  if (!fs::is_directory(home, ignored)) {
    return fail(ErrorKind::kNotFound,
                "model \"{}\": no such directory and not in the Hugging Face cache {}, expected one of them: {}", model,
                hub_folder().string(), fetch);
  }
  std::string revision;
  std::ifstream(home / "refs" / "main") >> revision;
  if (!is_plain_name(revision)) {
    return fail(ErrorKind::kNotFound, "model \"{}\": {} names no revision, expected that of a download: {}", model,
                (home / "refs" / "main").string(), fetch);
  }
  const fs::path snapshot = home / "snapshots" / revision;
  if (!fs::is_regular_file(snapshot / "config.json", ignored)) {
    return fail(ErrorKind::kNotFound, "model \"{}\": {} holds no config.json, expected a whole download: {}", model,
                snapshot.string(), fetch);
  }
  return snapshot.string();
}

}  // namespace latte
