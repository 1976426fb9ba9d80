#include "decode/prompt_cache.h"

#include <array>
#include <cctype>
#include <cstring>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "model/key_reader.h"

namespace latte {
namespace {

constexpr int kMost = std::numeric_limits<int>::max();

constexpr std::array kDTypes = {DType::kF64, DType::kF32, DType::kF16, DType::kBf16, DType::kQ8};
constexpr std::string_view kCodedType = dtype_name(DType::kQ8);

template <class Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The payloads of a file's sections, one after another. The first thing that does not hold stays as the error.
class SectionReader {
 public:
  SectionReader(std::span<const std::byte> file, std::string_view source) : rest_(file), file_(file), source_(source) {}

  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

  void preamble() {
    const bool known = rest_.size() >= kPromptCacheMagic.size() &&
                       std::memcmp(rest_.data(), kPromptCacheMagic.data(), kPromptCacheMagic.size()) == 0;
    if (!known)
      return refuse("not a prompt cache file ({} bytes), expected one that latte wrote: name another file",
                    file_.size());
    if (rest_.size() < kPreambleBytes) return refuse("cut off after {} bytes: delete it", file_.size());
    const auto version = number_at<std::uint32_t>(rest_, 8);
    if (version != kPromptCacheVersion) {
      return refuse(
          "a prompt cache of format version {}, this build reads {}: use the build that wrote it, or delete it",
          version, kPromptCacheVersion);
    }
    if (number_at<std::uint32_t>(rest_, 12) != 0) return refuse("broken at byte 12: delete it");
    rest_ = rest_.subspan(kPreambleBytes);
  }

  /// The next section, which must be `section`.
  std::span<const std::byte> take(Section section) {
    if (!ok()) return {};
    const std::size_t at = file_.size() - rest_.size();
    if (rest_.size() < kSectionHeaderBytes + kChecksumBytes) {
      refuse("cut off at byte {} of section {}: delete it", file_.size(), section_name(section));
      return {};
    }
    const auto bytes = number_at<std::uint64_t>(rest_, 8);
    const std::string_view name = section_name(section);
    const bool named = std::memcmp(rest_.data(), name.data(), 4) == 0 && number_at<std::uint32_t>(rest_, 4) == 0;
    if (!named) {
      refuse("broken at byte {}: expected section {} there; delete it", at, name);
      return {};
    }
    if (bytes > rest_.size() - kSectionHeaderBytes - kChecksumBytes) {
      refuse("cut off: section {} at byte {} says {} bytes, the file ends before; delete it", name, at, bytes);
      return {};
    }
    const std::size_t size = static_cast<std::size_t>(bytes);
    sum_.restart();
    sum_.add(rest_.first(kSectionHeaderBytes + size));
    const Digest stored{.low = number_at<std::uint64_t>(rest_, kSectionHeaderBytes + size),
                        .high = number_at<std::uint64_t>(rest_, kSectionHeaderBytes + size + 8)};
    if (sum_.digest() != stored) {
      refuse("broken: the checksum of section {} at byte {} does not hold; delete it", name, at);
      return {};
    }
    const std::span<const std::byte> payload = rest_.subspan(kSectionHeaderBytes, size);
    rest_ = rest_.subspan(kSectionHeaderBytes + size + kChecksumBytes);
    return payload;
  }

  void finish() {
    if (!take(Section::kEnd).empty()) refuse("broken: section END holds something; delete it");
    if (!rest_.empty()) refuse("{} bytes after its end, expected none: delete it", rest_.size());
  }

  /// `payload` is `rows` rows of `row_bytes` each.
  void expect_rows(Section section, std::span<const std::byte> payload, int rows, std::size_t row_bytes) {
    const std::size_t count = static_cast<std::size_t>(rows);
    const bool fits = row_bytes > 0 ? payload.size() / row_bytes == count && payload.size() % row_bytes == 0
                                    : payload.empty() && count == 0;
    if (!fits) {
      refuse("broken: section {} of {} bytes, its header says {} rows of {}; delete it", section_name(section),
             payload.size(), rows, row_bytes);
    }
  }

  template <class... Args>
  void refuse(fmt::format_string<Args...> message, Args&&... args) {
    if (error_.has_value()) return;
    error_ = fail(ErrorKind::kInvalidInput, "{}: {}", source_, fmt::format(message, std::forward<Args>(args)...));
  }

 private:
  std::span<const std::byte> rest_;
  std::span<const std::byte> file_;
  std::string_view source_;
  Checksum sum_;
  std::optional<Error> error_;
};

const Json& part(KeyReader& reader, const char* key) {
  static const Json empty = Json::object();
  const Json* value = reader.find(key);
  if (value != nullptr && value->is_object()) return *value;
  reader.refuse(key, value == nullptr ? "nothing" : brief_json(*value), "an object");
  return empty;
}

int count(KeyReader& reader, const char* key) {
  if (reader.find(key) == nullptr) reader.refuse(key, "nothing", "a number");
  return reader.integer(key, means(0), 0, kMost);
}

/// Texts are compared with those of this run, which no empty one equals.
const Absent<std::string> kNothing = means(std::string());

CacheModel read_model(KeyReader& above, const char* key, std::string_view source) {
  KeyReader reader(part(above, key), source, std::string(key) + ".");
  CacheModel model{.family = reader.text("family", kNothing),
                   .directory = reader.text("directory", kNothing),
                   .config = reader.text("config", kNothing),
                   .weights = reader.text("weights", kNothing)};
  above.absorb(reader);
  return model;
}

CacheShape read_shape(KeyReader& above, const char* key, std::string_view source) {
  KeyReader reader(part(above, key), source, std::string(key) + ".");
  CacheShape shape{.layers = reader.integer("layers", refused<int>(), 1, 1 << 16),
                   .width = reader.integer("width", refused<int>(), 1, 1 << 20),
                   .dtype = reader.text("dtype", kNothing),
                   .piece = {},
                   .rows = count(reader, "rows")};
  if (shape.dtype == kCodedType) {
    shape.piece = {.coded = reader.integer("coded", refused<int>(), 1, shape.width),
                   .exact = reader.integer("exact", refused<int>(), 0, shape.width)};
    if (reader.ok() && shape.width % shape.piece.width() != 0)
      reader.refuse("exact", fmt::format("{} columns after {} coded ones", shape.piece.exact, shape.piece.coded),
                    fmt::format("pieces that fill rows of {}", shape.width));
  }
  above.absorb(reader);
  return shape;
}

/// Bytes of one row of every layer; 0: a type that no cache has.
std::size_t row_bytes(const CacheShape& shape) {
  for (const DType dtype : kDTypes) {
    if (shape.dtype != dtype_name(dtype)) continue;
    const RowFormat row{.width = shape.width, .dtype = dtype, .piece = shape.piece};
    return static_cast<std::size_t>(shape.layers) * static_cast<std::size_t>(row.bytes());
  }
  return 0;
}

Result<PromptCacheHeader> parse_header(std::span<const std::byte> payload, std::string_view source) {
  const std::string_view text(reinterpret_cast<const char*>(payload.data()), payload.size());
  Result<Json> json = parse_json(text, source);
  if (!json.ok()) return json.error();
  if (!json->is_object())
    return fail(ErrorKind::kInvalidInput, "{}: header {}, expected an object", source, brief_json(*json));
  KeyReader reader(*json, source);
  PromptCacheHeader header{.row_format = count(reader, "row_format"),
                           .model = read_model(reader, "model", source),
                           .computed = reader.text("computed", kNothing),
                           .rows = read_shape(reader, "rows", source),
                           .tokens = count(reader, "tokens"),
                           .generated_from = count(reader, "generated_from"),
                           .drafter = reader.text("drafter", kNothing),
                           .mtp = std::nullopt,
                           .draft = std::nullopt};
  if (reader.find("mtp") != nullptr) {
    KeyReader mtp(part(reader, "mtp"), source, "mtp.");
    header.mtp = MtpHeader{.rows = read_shape(mtp, "rows", source),
                           .first_row = count(mtp, "first_row"),
                           .kept_first = count(mtp, "kept_first"),
                           .kept_rows = count(mtp, "kept_rows"),
                           .kept_row_bytes = count(mtp, "kept_row_bytes")};
    reader.absorb(mtp);
  }
  if (reader.find("draft") != nullptr) {
    KeyReader draft(part(reader, "draft"), source, "draft.");
    header.draft = DraftHeader{.model = read_model(draft, "model", source),
                               .rows = read_shape(draft, "rows", source),
                               .first_token = count(draft, "first_token")};
    reader.absorb(draft);
  }
  if (!reader.ok()) return reader.error();
  return header;
}

/// What the sections' checksums cannot know: that the numbers of a header belong together.
void check_places(const PromptCacheHeader& header, SectionReader& reader) {
  const int rows = header.rows.rows;
  if (header.tokens < rows || header.tokens - rows > 1 || header.generated_from > header.tokens)
    reader.refuse("broken: {} tokens for {} rows, generated from {}; delete it", header.tokens, rows,
                  header.generated_from);
  if (header.mtp.has_value()) {
    const MtpHeader& mtp = *header.mtp;
    if (!MtpDrafter::holds_together({mtp.first_row, mtp.kept_first}, mtp.rows.rows, mtp.kept_rows, rows) ||
        mtp.rows.layers != 1)
      reader.refuse("broken: {} MTP rows from {} and {} kept ones from {} do not fit {} rows; delete it", mtp.rows.rows,
                    mtp.first_row, mtp.kept_rows, mtp.kept_first, rows);
  }
  if (header.draft.has_value() && header.draft->rows.rows > std::int64_t{rows} - header.draft->first_token)
    reader.refuse("broken: {} rows of the draft model from token {} do not fit {} rows; delete it",
                  header.draft->rows.rows, header.draft->first_token, rows);
}

}  // namespace

std::string_view section_name(Section section) {
  constexpr std::array<std::string_view, 8> kNames = {"HEAD", "NOTE", "TOKN", "ROWS", "MTPR", "MTPQ", "DRFT", "END "};
  return kNames[static_cast<std::size_t>(section)];
}

Result<PromptCache> parse_prompt_cache(std::span<const std::byte> file, std::string_view source) {
  SectionReader reader(file, source);
  reader.preamble();
  const std::span<const std::byte> head = reader.take(Section::kHeader);
  if (!reader.ok()) return reader.error();
  Result<PromptCacheHeader> header = parse_header(head, source);
  if (!header.ok()) return header.error();

  PromptCache cache;
  const std::span<const std::byte> note = reader.take(Section::kNote);
  if (note.size() > kMostNoteBytes)
    reader.refuse("a note of {} bytes, expected at most {}", note.size(), kMostNoteBytes);
  cache.note = {reinterpret_cast<const char*>(note.data()), note.size()};
  const std::span<const std::byte> tokens = reader.take(Section::kTokens);
  reader.expect_rows(Section::kTokens, tokens, header->tokens, sizeof(TokenId));
  cache.rows = reader.take(Section::kRows);
  reader.expect_rows(Section::kRows, cache.rows, header->rows.rows, row_bytes(header->rows));
  if (header->mtp.has_value()) {
    cache.mtp_rows = reader.take(Section::kMtpRows);
    reader.expect_rows(Section::kMtpRows, cache.mtp_rows, header->mtp->rows.rows, row_bytes(header->mtp->rows));
    cache.mtp_queue = reader.take(Section::kMtpQueue);
    reader.expect_rows(Section::kMtpQueue, cache.mtp_queue, header->mtp->kept_rows,
                       static_cast<std::size_t>(header->mtp->kept_row_bytes));
  }
  if (header->draft.has_value()) {
    cache.draft_rows = reader.take(Section::kDraftRows);
    reader.expect_rows(Section::kDraftRows, cache.draft_rows, header->draft->rows.rows, row_bytes(header->draft->rows));
  }
  reader.finish();
  if (reader.ok()) check_places(*header, reader);
  if (!reader.ok()) return reader.error();
  cache.tokens.resize(tokens.size() / sizeof(TokenId));
  if (!tokens.empty()) std::memcpy(cache.tokens.data(), tokens.data(), tokens.size());
  cache.header = std::move(*header);
  return cache;
}

Status check_same_rows(const PromptCacheHeader& found, const PromptCacheHeader& mine, std::string_view source) {
  if (found.row_format != mine.row_format) {
    return fail(ErrorKind::kInvalidInput,
                "{}: rows of format {}, this build computes format {}: use the build that wrote it, or delete it",
                source, found.row_format, mine.row_format);
  }
  if (found.model.config != mine.model.config || found.model.weights != mine.model.weights) {
    const bool weights_alone = found.model.config == mine.model.config;
    return fail(ErrorKind::kInvalidInput,
                "{}: rows of another model, {} {} with other {}, expected those of {} {}: open that model, or name "
                "another file",
                source, found.model.family, quote_name(found.model.directory),
                weights_alone ? "weights" : "configuration", mine.model.family, quote_name(mine.model.directory));
  }
  if (!found.rows.holds_rows_like(mine.rows)) {
    std::string type = found.rows.dtype;
    for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return fail(
        ErrorKind::kInvalidInput,
        "{}: {} layers of rows of {} {}, this session has {} of {} {}: give --cache-type {}, or name another file",
        source, found.rows.layers, found.rows.width, quote_name(found.rows.dtype), mine.rows.layers, mine.rows.width,
        quote_name(mine.rows.dtype), cut_json(Json(type)));
  }
  if (found.computed != mine.computed) {
    return fail(ErrorKind::kInvalidInput,
                "{}: rows computed by {}, this session computes by {}, which gives other bits: open it alike, or name "
                "another file",
                source, quote_name(found.computed), quote_name(mine.computed));
  }
  return {};
}

}  // namespace latte
