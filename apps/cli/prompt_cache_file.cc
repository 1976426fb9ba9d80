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

/// How far a prompt follows the tokens of a file, and why no further.
std::string common_part(std::span<const std::int32_t> file, std::span<const std::int32_t> prompt,
                        const TextCodec* codec) {
  const std::size_t bound = std::min(file.size(), prompt.size());
  const std::size_t same = static_cast<std::size_t>(
      std::mismatch(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(bound), prompt.begin()).first -
      file.begin());
  std::string reason;
  if (same < bound) {
    reason = fmt::format("first different token at {}: file {}, prompt {}", same, token_words(file[same], codec),
                         token_words(prompt[same], codec));
  } else if (same == prompt.size()) {
    reason = "the prompt is all in the file; its last token is fed again for its logits";
  } else {
    reason = "the prompt goes on after what the file holds";
  }
  return fmt::format("{} of {} prompt tokens reused; {}", std::min(same, prompt.size() - 1), prompt.size(), reason);
}

}  // namespace

Status PromptCacheFile::load(Session& session, std::span<const std::int32_t> prompt, const TextCodec* codec) {
  if (path_.empty()) return {};
  std::error_code ignored;
  if (!fs::exists(path_, ignored)) {
    const fs::path folder = fs::path(path_).parent_path();
    if (!folder.empty() && !fs::is_directory(folder, ignored)) {
      return Error{ErrorKind::kNotFound,
                   fmt::format("--prompt-cache-file {}: no folder {}, expected one that may be written: make it first",
                               path_, folder.string())};
    }
    if (verbose_) note(fmt::format("prompt cache {}: not there yet", path_));
    return {};
  }
  CacheFileReport report;
  const Result<std::string> loaded = session.load(path_, &report);
  if (!loaded.ok()) return loaded.error();
  loaded_.assign(session.tokens().begin(), session.tokens().end());
  whole_ = report.drafter_note.empty();
  if (!verbose_) return {};
  note(fmt::format("prompt cache {}: {} tokens; {}", path_, report.rows,
                   prompt.empty() ? "the prompt is empty" : common_part(loaded_, prompt, codec)));
  if (!whole_) note(fmt::format("prompt cache {}: {}", path_, report.drafter_note));
  return {};
}

Status PromptCacheFile::save(const Session& session) const {
  if (path_.empty()) return {};
  const std::span<const std::int32_t> held = session.tokens();
  if (whole_ && std::equal(held.begin(), held.end(), loaded_.begin(), loaded_.end())) return {};
  return session.save(path_);
}

}  // namespace latte::cli
