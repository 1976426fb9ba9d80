#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "arguments.h"
#include "latte/session.h"

namespace latte::cli {

/// The file of --prompt-cache-file, or nothing.
class PromptCacheFile {
 public:
  explicit PromptCacheFile(const Arguments& arguments)
      : path_(arguments.text_or("--prompt-cache-file", "")), verbose_(arguments.flag("--verbose")) {}

  /// Loads the session if the file is there, and says under -v what the prompt shares with it. Errors: a file that
  /// cannot serve this session, which is never replaced; a folder that is not there.
  Status load(Session& session, std::span<const std::int32_t> prompt, const TextCodec* codec);
  /// Saves the session, unless it holds the very tokens that were loaded.
  Status save(const Session& session) const;

 private:
  std::string path_;
  bool verbose_;
  bool whole_ = false;  // the file holds what this session's drafter needs
  std::vector<std::int32_t> loaded_;
};

}  // namespace latte::cli
