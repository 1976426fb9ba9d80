// Where a model is looked for: folders, files in them, and the Hugging Face cache.
#include "api/model_lookup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "support/temp_folder.h"

namespace latte::test {
namespace {

namespace fs = std::filesystem;

std::string error_of(const std::string& model) {
  const Result<std::string> found = find_model(model);
  return found.ok() ? "(found " + *found + ")" : found.error().message;
}

TEST(FindModel, FileOfAFolderStandsForTheFolder) {
  const TempFolder folder;
  for (const char* name : {"config.json", "model.safetensors", "model-00001-of-00002.safetensors",
                           "model.safetensors.index.json", "weights.gguf", "notes.txt"})
    folder.write(name, "{}");
  for (const char* name :
       {"config.json", "model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json"}) {
    const Result<std::string> found = find_model(folder.file(name));
    ASSERT_TRUE(found.ok()) << found.error().message;
    EXPECT_EQ(*found, folder.path()) << name;
  }
  EXPECT_EQ(error_of(folder.file("weights.gguf")),
            folder.file("weights.gguf") +
                ": is a GGUF file, which latte does not read, expected a model folder with "
                "config.json and safetensors files, or one of these files");
  EXPECT_NE(error_of(folder.file("notes.txt")).find("notes.txt: is a file, expected a model folder"),
            std::string::npos);
}

TEST(FindModel, WeightsWithoutAConfigurationAreRefused) {
  const TempFolder folder;
  EXPECT_EQ(error_of(folder.write("model.safetensors", "")),
            folder.file("model.safetensors") +
                ": no config.json beside it, expected the folder of a model: fetch its other files, too");
}

/// Variables that are put back at the end.
class HubCache : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) {
      const char* value = std::getenv(name);
      before_.push_back(value == nullptr ? "" : value);
      unsetenv(name);
    }
  }
  void TearDown() override {
    for (std::size_t i = 0; i < before_.size(); ++i) {
      if (before_[i].empty()) {
        unsetenv(kNames[i]);
      } else {
        setenv(kNames[i], before_[i].c_str(), 1);
      }
    }
  }

  /// A download of org/name under `hub`; returns its snapshot.
  fs::path download(const fs::path& hub) const {
    const fs::path home = hub / "models--org--name-1.5", snapshot = home / "snapshots" / "abc123";
    fs::create_directories(home / "refs");
    fs::create_directories(snapshot);
    std::ofstream(home / "refs" / "main") << "abc123\n";
    std::ofstream(snapshot / "config.json") << "{}";
    return snapshot;
  }

  static constexpr const char* kNames[] = {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"};
  std::vector<std::string> before_;
  TempFolder folder_;
};

TEST_F(HubCache, EveryVariableLeadsThere) {
  const fs::path root = folder_.path();
  const struct {
    const char* variable;
    fs::path value, hub;
  } all[] = {{"HOME", root / "home", root / "home/.cache/huggingface/hub"},
             {"XDG_CACHE_HOME", root / "xdg", root / "xdg/huggingface/hub"},
             {"HF_HOME", root / "hf", root / "hf/hub"},
             {"HF_HUB_CACHE", root / "hub", root / "hub"}};
  for (const auto& one : all) {  // each outranks those before it
    setenv(one.variable, one.value.c_str(), 1);
    EXPECT_NE(error_of("org/name-1.5").find("not in the Hugging Face cache " + one.hub.string()), std::string::npos)
        << error_of("org/name-1.5");
    const fs::path snapshot = download(one.hub);
    EXPECT_EQ(error_of("org/name-1.5"), "(found " + snapshot.string() + ")");
  }
}

TEST_F(HubCache, WhatIsNotWholeSaysHowToFetchIt) {
  setenv("HF_HUB_CACHE", folder_.path().c_str(), 1);
  EXPECT_NE(
      error_of("org/other").find("fetch it with \"hf download org/other\" (or huggingface-cli download org/other)"),
      std::string::npos)
      << error_of("org/other");
  const fs::path snapshot = download(folder_.path());
  fs::remove(snapshot / "config.json");
  EXPECT_NE(error_of("org/name-1.5").find("holds no config.json, expected a whole download"), std::string::npos);
  for (const char* revision : {"", "../../..", "a/b"}) {
    std::ofstream(fs::path(folder_.path()) / "models--org--name-1.5/refs/main") << revision;
    EXPECT_NE(error_of("org/name-1.5").find("names no revision"), std::string::npos) << revision;
  }
}

TEST_F(HubCache, PathsAreNoNamesOfTheHub) {
  setenv("HF_HUB_CACHE", folder_.path().c_str(), 1);
  for (const char* path : {"/no/such", "./no", "../no", "a/b/c", "a/", "a/.."})
    EXPECT_EQ(error_of(path).find("Hugging Face"), std::string::npos) << error_of(path);
}

}  // namespace
}  // namespace latte::test
