#include "text/decoder_entry.h"

#include <nlohmann/json.hpp>
#include <string>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/vocabulary.h"

namespace latte {
namespace {

constexpr int kMostStripped = 64;

bool is_space_for_metaspace(const nlohmann::json& step) {
  return step.value("content", nlohmann::json()) == " " &&
         step.value("pattern", nlohmann::json()) == nlohmann::json{{"String", kMetaspaceText}};
}

Status read_strip(const nlohmann::json& step, const std::string& key, std::string_view file, DecoderEntry& decoder) {
  const nlohmann::json start = step.value("start", nlohmann::json());
  const bool known = step.value("content", nlohmann::json()) == " " && step.value("stop", nlohmann::json()) == 0 &&
                     start.is_number_integer() && start >= 0 && start <= kMostStripped;
  if (!known) {
    return fail(ErrorKind::kUnsupported, "{}: {} strips {}, expected spaces at the start alone, at most {}", file, key,
                quote_for_error(step.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)), kMostStripped);
  }
  decoder.strip_spaces = start.get<int>();
  return {};
}

Result<DecoderEntry> parse_sequence(const nlohmann::json& steps, std::string_view file) {
  // The steps in their order; each may follow only those before it in this list.
  constexpr std::string_view kOrder[] = {"Replace", "ByteFallback", "Fuse", "Strip"};
  DecoderEntry decoder;
  std::size_t next = 0;
  bool replaces = false;
  bool fuses = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::string key = fmt::format("decoder.decoders[{}]", i);
    const auto type = json_type_name(steps[i], key, file);
    if (!type.ok()) return type.error();
    std::size_t place = next;
    while (place < 4 && kOrder[place] != *type) ++place;
    if (place == 4 || (*type == "Replace" && !is_space_for_metaspace(steps[i]))) {
      return fail(ErrorKind::kUnsupported,
                  "{}: {} is {}, expected Replace (U+2581 by a space), ByteFallback, Fuse and Strip in this order",
                  file, key, quote_for_error(*type));
    }
    next = place + 1;
    replaces = replaces || *type == "Replace";
    fuses = fuses || *type == "Fuse";
    decoder.byte_fallback = decoder.byte_fallback || *type == "ByteFallback";
    if (*type != "Strip") continue;
    if (Status read = read_strip(steps[i], key, file, decoder); !read.ok()) return read.error();
  }
  if (!replaces || !fuses) {
    return fail(ErrorKind::kUnsupported, "{}: decoder.decoders has no {}, expected one", file,
                replaces ? "Fuse" : "Replace");
  }
  return decoder;
}

}  // namespace

Result<DecoderEntry> parse_decoder(const nlohmann::json& entry, std::string_view file) {
  const auto type = json_type_name(entry, "decoder", file);
  if (!type.ok()) return type.error();
  if (*type == "ByteLevel") return DecoderEntry{.byte_level = true};
  if (*type == "Sequence") {
    const auto steps = entry.find("decoders");
    if (steps != entry.end() && steps->is_array()) return parse_sequence(*steps, file);
    return fail(ErrorKind::kInvalidInput, "{}: decoder.decoders, expected the list of a Sequence", file);
  }
  return fail(ErrorKind::kUnsupported,
              "{}: decoder.type {}, expected ByteLevel or Sequence; this tokenizer is not supported", file,
              quote_for_error(*type));
}

}  // namespace latte
