#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/session_content.h"
#include "io/checksum.h"
#include "io/json_file.h"
#include "io/replace_file.h"
#include "latte/error.h"

namespace latte {

// The file of a session, described in docs/prompt-cache.md: a preamble, then sections in a fixed order, each with its
// checksum. Numbers are little-endian.
static_assert(std::endian::native == std::endian::little, "the file's numbers are read as they lie in memory");

inline constexpr std::string_view kPromptCacheMagic = "latte-pc";

/// Raised when a file of the older layout can no longer be read.
inline constexpr std::uint32_t kPromptCacheVersion = 1;
/// Raised when a build computes other rows from the same model: other bits, another order of columns.
inline constexpr int kRowFormat = 4;
inline constexpr std::size_t kMostNoteBytes = std::size_t{16} << 20;

inline constexpr std::size_t kPreambleBytes = 16;       ///< magic [8], version u32, zero u32
inline constexpr std::size_t kSectionHeaderBytes = 16;  ///< name [4], zero u32, payload bytes u64
inline constexpr std::size_t kChecksumBytes = 16;       ///< of a section's header and payload: low half, high half

/// Sections in the order of the file; those in brackets are there when the header says so.
enum class Section { kHeader, kNote, kTokens, kRows, kMtpRows, kMtpQueue, kDraftRows, kEnd };
std::string_view section_name(Section section);  ///< "HEAD", "NOTE", "TOKN", "ROWS", ["MTPR", "MTPQ"], ["DRFT"], "END "

/// Which model rows belong to: digests of its configuration and weights, and words for messages.
struct CacheModel {
  std::string family;
  std::string directory;
  std::string config;
  std::string weights;
};

/// The rows of one cache.
struct CacheShape {
  int layers = 0;
  int width = 0;
  std::string dtype;      ///< dtype_name()
  CodedPiece piece = {};  ///< of Q8 rows
  int rows = 0;

  bool holds_rows_like(const CacheShape& other) const {
    return layers == other.layers && width == other.width && dtype == other.dtype && piece == other.piece;
  }
};

struct MtpHeader {
  CacheShape rows;
  int first_row = 0;
  int kept_first = 0;
  int kept_rows = 0;
  int kept_row_bytes = 0;
};

struct DraftHeader {
  CacheModel model;
  CacheShape rows;
  int first_token = 0;
};

/// Everything about a file but its bulk; section HEAD, as JSON.
struct PromptCacheHeader {
  int row_format = kRowFormat;
  CacheModel model;
  std::string computed;  ///< what may change a row's bits: "cpu avx2, f32, fast, auto"
  CacheShape rows;
  int tokens = 0;
  int generated_from = 0;
  std::string drafter;  ///< "mtp", "draft", "lookup", "none"
  std::optional<MtpHeader> mtp;
  std::optional<DraftHeader> draft;
};

std::string header_text(const PromptCacheHeader& header);

/// A file's content; the views lie in its bytes.
struct PromptCache {
  PromptCacheHeader header;
  std::string_view note;
  std::vector<TokenId> tokens;
  std::span<const std::byte> rows;
  std::span<const std::byte> mtp_rows;
  std::span<const std::byte> mtp_queue;
  std::span<const std::byte> draft_rows;
};

/// Reads a whole file. Allocates no more than a small multiple of the file's own size, whatever it says. Errors, with
/// `source` first: no such file format, another version, a file that ends early or goes on too long, a checksum that
/// does not hold, a header that contradicts itself or the sections.
Result<PromptCache> parse_prompt_cache(std::span<const std::byte> file, std::string_view source);

/// Whether rows that `found` describes are those that a session described by `mine` would compute; the drafter's do not
/// count. Errors: another row format, model, cache type or computation, with both sides and what to do.
Status check_same_rows(const PromptCacheHeader& found, const PromptCacheHeader& mine, std::string_view source);

/// Writes preamble and sections to a file that is being replaced.
class SectionWriter {
 public:
  explicit SectionWriter(FileReplacement& file) : file_(file) {}

  Status preamble();
  /// A section of `bytes` in all, which add() then gives in parts.
  Status begin(Section section, std::uint64_t bytes);
  Status add(std::span<const std::byte> part);
  Status end();
  Status whole(Section section, std::span<const std::byte> payload);

 private:
  FileReplacement& file_;
  Checksum sum_;
};

}  // namespace latte
