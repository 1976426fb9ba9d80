#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "latte/error.h"

namespace latte::cli {

/// A float32 matrix in NumPy's .npy format 1.0, written row by row. The number of rows is fixed at the start. The rows
/// go to a file beside the asked one, which takes its name in close(): a run that fails leaves no half of a matrix, and
/// what was there before stays. What is no plain file (/dev/stdout) is written directly.
class NpyFile {
 public:
  /// Writes the header. Errors name the path.
  static Result<NpyFile> create(const std::string& path, std::int64_t rows, std::int64_t cols);

  NpyFile(NpyFile&& other) noexcept = default;
  NpyFile& operator=(NpyFile&&) = delete;
  ~NpyFile();

  /// Whole rows, in order.
  Status append(std::span<const float> values);
  /// Flushes, and the file is there; a full disk shows here at the latest.
  Status close();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NpyFile(std::string path, std::string written, std::FILE* file)
      : path_(std::move(path)), written_(std::move(written)), file_(file) {}

  std::string path_;
  std::string written_;  // where the rows go until close()
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace latte::cli
