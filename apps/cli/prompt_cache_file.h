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

  /// Loads the session if the file is there. Errors, before anything is computed: a file that cannot serve this session
  /// or holds a conversation, which is never replaced; a place that cannot be written.
  Status load(Session& session);
  /// Says under -v how much of the prompt came from the file, and why no more.
  void explain(std::span<const std::int32_t> prompt, int cached_tokens, bool pinned, const TextCodec* codec) const;
  /// Saves the session, unless it holds the very tokens that were loaded; says so when tokens of the file go.
  Status save(const Session& session) const;

 private:
  std::string path_;
  bool verbose_;
  bool whole_ = false;  // the file holds what this session's drafter needs
  bool found_ = false;
  std::string drafter_note_;
  std::vector<std::int32_t> loaded_;
};

}  // namespace latte::cli
