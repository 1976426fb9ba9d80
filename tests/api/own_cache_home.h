#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "support/temp_folder.h"

namespace latte::test {

/// A cache directory of the test's own.
class OwnCacheHome : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* old = std::getenv("XDG_CACHE_HOME")) old_ = old;
    use(folder_.path());
  }
  void TearDown() override {
    if (old_.has_value()) {
      use(*old_);
    } else {
      unsetenv("XDG_CACHE_HOME");
    }
  }
  static void use(const std::string& folder) { setenv("XDG_CACHE_HOME", folder.c_str(), 1); }

  TempFolder folder_;

 private:
  std::optional<std::string> old_;
};

}  // namespace latte::test
