#include "text/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/utf8.h"

namespace latte {
namespace {

// utf8proc puts marks in order by exchanging neighbours, which is quadratic in the length of a run of marks. No text
// that people write has runs this long; ordering them first (a canonical equivalence) keeps a hostile one linear.
constexpr std::size_t kLongMarkRun = 64;

std::string order_long_mark_runs(std::string_view text) {
  struct Mark {
    int combining_class;
    std::string_view bytes;
  };
  std::string out;
  out.reserve(text.size());
  std::vector<Mark> run;
  const auto flush = [&] {
    if (run.size() > kLongMarkRun) {
      std::stable_sort(run.begin(), run.end(),
                       [](const Mark& a, const Mark& b) { return a.combining_class < b.combining_class; });
    }
    for (const Mark& mark : run) out.append(mark.bytes);
    run.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const int combining_class = utf8proc_get_property(static_cast<utf8proc_int32_t>(step.code_point))->combining_class;
    const std::string_view bytes = text.substr(at, step.length);
    if (combining_class == 0) {
      flush();
      out.append(bytes);
    } else {
      run.push_back({combining_class, bytes});
    }
    at += step.length;
  }
  flush();
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

}  // namespace

Result<Normalizer> Normalizer::parse(const nlohmann::json& entry, std::string_view file) {
  Normalizer normalizer;
  if (entry.is_null()) return normalizer;
  const auto type = json_type_name(entry, "normalizer", file);
  if (!type.ok()) return type.error();
  if (*type == "NFC") {
    normalizer.nfc_ = true;
    return normalizer;
  }
  if (*type == "Sequence") {
    const auto members = entry.find("normalizers");
    if (members == entry.end() || !members->is_array()) {
      return fail(ErrorKind::kInvalidInput, "{}: normalizer.normalizers is missing, expected the list of a Sequence",
                  file);
    }
    for (const nlohmann::json& member : *members) {
      const auto parsed = parse(member, file);
      if (!parsed.ok()) return parsed.error();
      normalizer.nfc_ = normalizer.nfc_ || parsed->nfc_;
    }
    return normalizer;
  }
  return fail(ErrorKind::kUnsupported,
              "{}: normalizer.type {}, expected Sequence or NFC; this tokenizer is not supported", file,
              quote_for_error(*type));
}

Result<std::string> Normalizer::apply(std::string_view text) const {
  if (!nfc_ || is_ascii(text)) return std::string(text);
  const std::string ordered = order_long_mark_runs(text);
  if (ordered.size() > static_cast<std::size_t>(std::numeric_limits<int>::max() / 8)) {
    return fail(ErrorKind::kInvalidInput, "a text of {} bytes is too long to normalise, expected at most {}; split it",
                ordered.size(), std::numeric_limits<int>::max() / 8);
  }
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(ordered.data()),
                                               static_cast<utf8proc_ssize_t>(ordered.size()), &composed,
                                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (length < 0) {
    return fail(ErrorKind::kInvalidInput, "the text cannot be normalised to NFC: {}; expected valid UTF-8",
                utf8proc_errmsg(length));
  }
  std::string out(reinterpret_cast<const char*>(composed), static_cast<std::size_t>(length));
  std::free(composed);
  return out;
}

}  // namespace latte
