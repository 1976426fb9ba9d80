#include <algorithm>
#include <filesystem>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "decode/session.h"
#include "io/file_map.h"
#include "model/rope.h"

namespace latte {
namespace {

constexpr std::size_t kPartBytes = std::size_t{1} << 20;

const char* path_word(MlaPath path) {
  switch (path) {
    case MlaPath::kAbsorbed:
      return "absorbed";
    case MlaPath::kMaterialised:
      return "materialised";
    case MlaPath::kFormula:
      return "formula";
    case MlaPath::kAuto:
    case MlaPath::kPinned:  // the numerics' word says it
      break;
  }
  return "auto";
}

CacheModel describe_model(const Model& model, const std::string& weights) {
  return {.family = model.config.family,
          .directory = model.weights.checkpoint.directory(),
          .config = model.config_digest.hex(),
          .weights = weights};
}

/// What may change a row's bits, the list of LongRoPE that the context has picked among it.
std::string computed_by(const OpenModel& open) {
  const EngineInfo& info = open.info;
  std::string how = fmt::format("{} {}, {}, {}, {}", info.device, info.isa, info.compute, info.numerics,
                                path_word(open.sequence.path));
  if (info.quantize != "none") how += ", weights " + info.quantize;
  const auto& longrope = open.model.config.rope.longrope;
  if (!longrope.has_value()) return how;
  return how + (takes_long_list(*longrope, open.sequence.context) ? ", long rope list" : ", short rope list");
}

CacheShape describe_rows(const LatentCache& cache, int rows) {
  const RowFormat& row = cache.row();
  return {.layers = cache.layers(),
          .width = row.width,
          .dtype = std::string(dtype_name(row.dtype)),
          .piece = row.dtype == DType::kQ8 ? row.piece : CodedPiece{},
          .rows = rows};
}

LatentRows rows_of(const LatentCache& like, int length, std::span<const std::byte> bytes) {
  return {.length = length, .layers = like.layers(), .row = like.row(), .bytes = bytes};
}

/// The first `rows` rows of every layer as one section. The device is held for a part at a time, not while the disk
/// works.
Status write_rows(SectionWriter& writer, Section section, const LatentCache& cache, int rows, std::mutex& busy) {
  const std::size_t row_bytes = cache.row_bytes();
  const int most = static_cast<int>(std::max<std::size_t>(1, kPartBytes / row_bytes));
  const std::uint64_t all =
      std::uint64_t{row_bytes} * static_cast<std::uint64_t>(cache.layers()) * static_cast<std::uint64_t>(rows);
  if (Status begun = writer.begin(section, all); !begun.ok()) return begun;
  std::vector<std::byte> part;
  for (int layer = 0; layer < cache.layers(); ++layer) {
    for (int first = 0; first < rows; first += most) {
      const int last = std::min(rows, first + most);
      part.resize(row_bytes * static_cast<std::size_t>(last - first));
      {
        const std::lock_guard<std::mutex> turn(busy);
        cache.read(layer, first, last, part);
      }
      if (Status added = writer.add(part); !added.ok()) return added;
    }
  }
  return writer.end();
}

Status check_tokens(const PromptCache& file, int vocab, const std::string& path) {
  for (const TokenId id : file.tokens) {
    if (id >= 0 && id < vocab) continue;
    return fail(ErrorKind::kInvalidInput, "{}: broken: token id {}, expected 0 to {}; delete it", path, id, vocab - 1);
  }
  return {};
}

}  // namespace

/// This session as the header of a file.
PromptCacheHeader SessionState::describe() const {
  const int rows = sequence.length();
  const int saved_tokens = std::min(static_cast<int>(tokens.size()), rows + 1);
  PromptCacheHeader header{
      .row_format = kRowFormat,
      .model = describe_model(model->model, model->weights_digest.of(model->model)),
      .computed = computed_by(*model),
      .rows = describe_rows(sequence.cache(), rows),
      .tokens = saved_tokens,
      .generated_from = std::min(generated_from, saved_tokens),
      .drafter = std::string(word(spec)),
      .mtp = std::nullopt,
      .draft = std::nullopt,
  };
  if (mtp_drafter != nullptr && mtp_state_is_whole()) {
    const ConstMatRef kept = mtp_sequence->kept();
    header.mtp =
        MtpHeader{.rows = describe_rows(mtp_sequence->cache(), mtp_sequence->length()),
                  .first_row = mtp_drafter->place().first_row,
                  .kept_first = mtp_drafter->place().kept_first,
                  .kept_rows = static_cast<int>(kept.rows),
                  .kept_row_bytes = static_cast<int>(kept.cols * static_cast<std::int64_t>(dtype_bytes(kept.dtype)))};
  }
  if (draft_drafter != nullptr) {
    const DraftModelDrafter::Place place = draft_drafter->place(fed_tokens());
    header.draft = DraftHeader{.model = describe_model(*model->draft, model->draft_weights_digest.of(*model->draft)),
                               .rows = describe_rows(draft_sequence->cache(), place.rows),
                               .first_token = place.first_token};
  }
  return header;
}

Status SessionState::check_save(const std::string& path) {
  const Result<FileReplacement> file = FileReplacement::begin(path);  // abandoned: nothing is written
  if (!file.ok()) return file.error();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const Result<FileMap> there = FileMap::open(path);
  if (!there.ok()) return there.error();
  const std::string_view content(reinterpret_cast<const char*>(there->bytes().data()), there->bytes().size());
  if (content.empty() || content.starts_with(kPromptCacheMagic)) return {};
  return fail(ErrorKind::kInvalidInput,
              "{}: holds something else than a session of latte's, expected one to replace or a new name; it stays as "
              "it is",
              path);
}

Status SessionState::save(const std::string& path, std::string_view note) const {
  if (Status fits = check_save(path); !fits.ok()) return fits;
  if (note.size() > kMostNoteBytes) {
    return fail(ErrorKind::kInvalidInput, "{}: a note of {} bytes, expected at most {}", path, note.size(),
                kMostNoteBytes);
  }
  const PromptCacheHeader header = describe();
  const std::string head = header_text(header);
  Result<FileReplacement> file = FileReplacement::begin(path);
  if (!file.ok()) return file.error();
  SectionWriter writer(*file);
  Status written = writer.preamble();
  const auto whole = [&](Section section, std::span<const std::byte> payload) {
    if (written.ok()) written = writer.whole(section, payload);
  };
  const auto rows = [&](Section section, const LatentCache& cache, int count) {
    if (written.ok()) written = write_rows(writer, section, cache, count, model->busy);
  };
  whole(Section::kHeader, std::as_bytes(std::span(head)));
  whole(Section::kNote, std::as_bytes(std::span(note)));
  whole(Section::kTokens, std::as_bytes(std::span(tokens).first(static_cast<std::size_t>(header.tokens))));
  rows(Section::kRows, sequence.cache(), header.rows.rows);
  if (header.mtp.has_value()) {
    rows(Section::kMtpRows, mtp_sequence->cache(), header.mtp->rows.rows);
    whole(Section::kMtpQueue, kept_bytes());
  }
  if (header.draft.has_value()) rows(Section::kDraftRows, draft_sequence->cache(), header.draft->rows.rows);
  whole(Section::kEnd, {});
  return written.ok() ? file->commit() : written;
}

/// The MTP queue's rows, read while holding the device.
std::vector<std::byte> SessionState::kept_bytes() const {
  const std::lock_guard<std::mutex> turn(model->busy);
  return mtp_sequence->kept_bytes();
}

Result<std::string> SessionState::load(const std::string& path, CacheFileReport& report) {
  const Result<FileMap> map = FileMap::open(path);
  if (!map.ok()) return map.error();
  const Result<PromptCache> file = parse_prompt_cache(map->bytes(), path);
  if (!file.ok()) return file.error();
  const PromptCacheHeader& header = file->header;
  const PromptCacheHeader mine = describe();
  if (Status same = check_same_rows(header, mine, path); !same.ok()) return same.error();
  if (header.rows.rows > sequence.context()) {
    return fail(ErrorKind::kInvalidInput, "{}: {} rows, this session holds at most {}: raise --ctx-size", path,
                header.rows.rows, sequence.context());
  }
  if (Status known = check_tokens(*file, sequence.vocab(), path); !known.ok()) return known.error();
  SessionContent content{.tokens = file->tokens,
                         .generated_from = header.generated_from,
                         .cache = rows_of(sequence.cache(), header.rows.rows, file->rows),
                         .mtp = std::nullopt,
                         .draft = std::nullopt};
  const std::string drafter_note = match_drafter(*file, content);
  if (Status taken = take_over(content); !taken.ok()) return taken.error();
  const bool has_rows = mtp_drafter != nullptr || draft_drafter != nullptr;
  report = {.rows = header.rows.rows,
            .drafter = header.drafter,
            .drafter_note = drafter_note,
            .drafter_starts_anew = has_rows && !drafter_note.empty()};
  return std::string(file->note);
}

/// Puts into `content` what of the file's drafter this session can use; gives the reason when that is not all.
std::string SessionState::match_drafter(const PromptCache& file, SessionContent& content) const {
  const PromptCacheHeader& header = file.header;
  if (mtp_drafter != nullptr && header.mtp.has_value()) {
    const LatentCache& cache = mtp_sequence->cache();
    const std::size_t kept_row_bytes =
        static_cast<std::size_t>(model->model.config.hidden) * dtype_bytes(model->backend->info().activation);
    if (!header.mtp->rows.holds_rows_like(describe_rows(cache, 0)) ||
        (header.mtp->kept_rows > 0 && static_cast<std::size_t>(header.mtp->kept_row_bytes) != kept_row_bytes))
      return "its mtp rows have another shape and are left out";
    content.mtp = MtpContent{.cache = rows_of(cache, header.mtp->rows.rows, file.mtp_rows),
                             .place = {header.mtp->first_row, header.mtp->kept_first},
                             .kept = file.mtp_queue};
    return "";
  }
  if (draft_drafter != nullptr && header.draft.has_value()) {
    const LatentCache& cache = draft_sequence->cache();
    const CacheModel draft = describe_model(*model->draft, model->draft_weights_digest.of(*model->draft));
    if (header.draft->model.config != draft.config || header.draft->model.weights != draft.weights ||
        !header.draft->rows.holds_rows_like(describe_rows(cache, 0)))
      return fmt::format("its draft model was another, {}: the rows of that one are left out",
                         quote_name(header.draft->model.directory));
    content.draft = DraftContent{.cache = rows_of(cache, header.draft->rows.rows, file.draft_rows),
                                 .first_token = header.draft->first_token};
    return "";
  }
  const bool has_rows = header.mtp.has_value() || header.draft.has_value();
  const bool wants_rows = mtp_drafter != nullptr || draft_drafter != nullptr;
  if (wants_rows)
    return fmt::format("it was saved with drafter {}: {} has no rows of its own in it and starts anew",
                       quote_name(header.drafter), word(spec));
  if (has_rows)
    return fmt::format("the rows of its drafter {} are left out: this session's is {}", quote_name(header.drafter),
                       word(spec));
  return "";  // lookup and none need the tokens alone
}

}  // namespace latte
