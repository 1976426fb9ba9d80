#include <array>
#include <cstring>

#include "decode/prompt_cache.h"

namespace latte {
namespace {

Json to_json(const CacheModel& model) {
  return {
      {"family", model.family}, {"directory", model.directory}, {"config", model.config}, {"weights", model.weights}};
}

Json to_json(const CacheShape& shape) {
  Json json = {{"layers", shape.layers}, {"width", shape.width}, {"dtype", shape.dtype}, {"rows", shape.rows}};
  if (shape.piece.width() > 0) {
    json["coded"] = shape.piece.coded;
    json["exact"] = shape.piece.exact;
  }
  return json;
}

}  // namespace

std::string header_text(const PromptCacheHeader& header) {
  Json json = {{"row_format", header.row_format}, {"model", to_json(header.model)},
               {"computed", header.computed},     {"rows", to_json(header.rows)},
               {"tokens", header.tokens},         {"generated_from", header.generated_from},
               {"drafter", header.drafter}};
  if (header.mtp.has_value()) {
    json["mtp"] = {{"rows", to_json(header.mtp->rows)},
                   {"first_row", header.mtp->first_row},
                   {"kept_first", header.mtp->kept_first},
                   {"kept_rows", header.mtp->kept_rows},
                   {"kept_row_bytes", header.mtp->kept_row_bytes}};
  }
  if (header.draft.has_value()) {
    json["draft"] = {{"model", to_json(header.draft->model)},
                     {"rows", to_json(header.draft->rows)},
                     {"first_token", header.draft->first_token}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status SectionWriter::preamble() {
  std::array<std::byte, kPreambleBytes> bytes{};
  std::memcpy(bytes.data(), kPromptCacheMagic.data(), kPromptCacheMagic.size());
  std::memcpy(bytes.data() + 8, &kPromptCacheVersion, sizeof kPromptCacheVersion);
  return file_.write(bytes);
}

Status SectionWriter::begin(Section section, std::uint64_t bytes) {
  std::array<std::byte, kSectionHeaderBytes> header{};
  std::memcpy(header.data(), section_name(section).data(), 4);
  std::memcpy(header.data() + 8, &bytes, sizeof bytes);
  sum_.restart();
  return add(header);
}

Status SectionWriter::add(std::span<const std::byte> part_bytes) {
  sum_.add(part_bytes);
  return file_.write(part_bytes);
}

Status SectionWriter::end() {
  const Digest digest = sum_.digest();
  std::array<std::byte, kChecksumBytes> bytes{};
  std::memcpy(bytes.data(), &digest.low, 8);
  std::memcpy(bytes.data() + 8, &digest.high, 8);
  return file_.write(bytes);
}

Status SectionWriter::whole(Section section, std::span<const std::byte> payload) {
  if (Status begun = begin(section, payload.size()); !begun.ok()) return begun;
  if (Status added = add(payload); !added.ok()) return added;
  return end();
}

}  // namespace latte
