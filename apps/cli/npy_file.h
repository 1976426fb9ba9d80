#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include "latte/error.h"

namespace latte::cli {

/// A float32 matrix in NumPy's .npy format 1.0, written row by row. The number of rows is fixed at the start.
class NpyFile {
 public:
  /// Creates or replaces the file and writes its header. Errors name the path.
  static Result<NpyFile> create(const std::string& path, std::int64_t rows, std::int64_t cols);

  /// Whole rows, in order.
  Status append(std::span<const float> values);
  /// Flushes; a full disk shows here at the latest.
  Status close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NpyFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace latte::cli
