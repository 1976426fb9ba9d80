#include "prompt_cache_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "outcome.h"

namespace latte::cli {
namespace {

namespace fs = std::filesystem;

/// `345 " dawn"`.
std::string token_words(std::int32_t id, const TextCodec* codec) {
  const Result<std::string> text = codec != nullptr ? codec->decode({&id, 1}) : std::string();
  if (codec == nullptr || !text.ok()) return fmt::format("{}", id);
  const nlohmann::json quoted(*text);
  return fmt::format("{} {}", id, quoted.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::size_t common_length(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t bound = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(bound), b.begin()).first - a.begin());
}

/// Why no more of the prompt came from the file.
std::string miss_reason(std::span<const std::int32_t> file, std::span<const std::int32_t> prompt, std::size_t cached,
                        bool pinned, const TextCodec* codec) {
  const std::size_t same = common_length(file, prompt);
  if (pinned && cached + 1 < same) {
    return fmt::format("{} are the same, but --numerics pinned keeps whole steps alone, read as a prompt", same);
  }
  if (same < file.size() && same < prompt.size()) {
    return fmt::format("first different token at {}: file {}, prompt {}", same, token_words(file[same], codec),
                       token_words(prompt[same], codec));
  }
  return same == prompt.size() ? "the prompt is all in the file; its last token is fed again for its logits"
                               : "the prompt goes on after what the file holds";
}

}  // namespace

Status PromptCacheFile::load(Session& session) {
  if (path_.empty()) return {};
  std::error_code ignored;
  const fs::path folder = fs::path(path_).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, ignored)) {
    return Error{ErrorKind::kNotFound,
                 fmt::format("--prompt-cache-file {}: no folder {}, expected one that may be written: make it first",
                             path_, folder.string())};
  }
  found_ = fs::exists(path_, ignored);
  if (found_) {
    CacheFileReport report;
    const Result<std::string> loaded = session.load(path_, &report);
    if (!loaded.ok()) return loaded.error();
    if (!loaded->empty()) {
      return Error{ErrorKind::kInvalidInput,
                   fmt::format("--prompt-cache-file {}: holds a conversation, expected a prompt cache or a new name: "
                               "latte chat continues it with /load; it stays as it is",
                               path_)};
    }
    loaded_.assign(session.tokens().begin(), session.tokens().end());
    whole_ = !report.drafter_starts_anew;
    drafter_note_ = report.drafter_note;
  }
  return Session::check_save(path_);
}

void PromptCacheFile::explain(std::span<const std::int32_t> prompt, int cached_tokens, bool pinned,
                              const TextCodec* codec) const {
  if (path_.empty() || !verbose_) return;
  if (!found_) {
    note(fmt::format("prompt cache {}: was not there yet", path_));
    return;
  }
  note(fmt::format("prompt cache {}: {} tokens; {} of {} prompt tokens reused; {}", path_, loaded_.size(),
                   cached_tokens, prompt.size(),
                   miss_reason(loaded_, prompt, static_cast<std::size_t>(cached_tokens), pinned, codec)));
  if (!drafter_note_.empty()) note(fmt::format("prompt cache {}: {}", path_, drafter_note_));
}

Status PromptCacheFile::save(const Session& session) const {
  if (path_.empty()) return {};
  const std::span<const std::int32_t> held = session.tokens();
  const std::size_t kept = common_length(loaded_, held);
  if (whole_ && kept == held.size() && kept == loaded_.size()) return {};
  if (kept < loaded_.size()) {
    note(fmt::format("prompt cache {}: {} of its {} tokens are not of this text and go", path_, loaded_.size() - kept,
                     loaded_.size()));
  }
  return session.save(path_);
}

}  // namespace latte::cli
