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

Result<std::string> to_nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
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

Result<std::string> replaced(const Pattern& pattern, std::string_view content, std::string_view text) {
  std::vector<TextSpan> matches;
  const Status found = pattern.find_all(text, matches);
  if (!found.ok()) return found.error();
  std::string out;
  out.reserve(text.size());
  std::size_t from = 0;
  for (const TextSpan& match : matches) {
    out.append(text, from, match.begin - from).append(content);
    from = match.end;
  }
  out.append(text.substr(from));
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::parse(const nlohmann::json& entry, std::string_view file) {
  Normalizer normalizer;
  if (entry.is_null()) return normalizer;
  const Status added = normalizer.add(entry, "normalizer", file, 0);
  if (!added.ok()) return added.error();
  return normalizer;
}

Normalizer Normalizer::prepending(std::string_view prefix, bool first_only) {
  Normalizer normalizer;
  Step step;
  step.kind = Step::Kind::kPrepend;
  step.first_only = first_only;
  step.content = prefix;
  normalizer.steps_.push_back(std::move(step));
  return normalizer;
}

Status Normalizer::add(const nlohmann::json& entry, const std::string& key, std::string_view file, int depth) {
  const auto type = json_type_name(entry, key, file);
  if (!type.ok()) return type.error();
  if (*type == "NFC") {
    steps_.emplace_back();
    return {};
  }
  if (*type == "Sequence") {
    const auto members = entry.find("normalizers");
    if (members == entry.end() || !members->is_array() || depth >= kMostSequences) {
      return fail(ErrorKind::kInvalidInput,
                  "{}: {}.normalizers, expected the list of a Sequence nested at most {} times", file, key,
                  kMostSequences);
    }
    std::size_t index = 0;
    for (const nlohmann::json& member : *members) {
      const Status added = add(member, fmt::format("{}.normalizers[{}]", key, index++), file, depth + 1);
      if (!added.ok()) return added;
    }
    return {};
  }
  if (*type == "Replace") return add_replace(entry, key, file);
  if (*type == "Prepend") {
    const auto prefix = entry.find("prepend");
    if (prefix == entry.end() || !prefix->is_string()) {
      return fail(ErrorKind::kInvalidInput, "{}: {}.prepend, expected a text", file, key);
    }
    Step step;
    step.kind = Step::Kind::kPrepend;
    step.content = prefix->get<std::string>();
    steps_.push_back(std::move(step));
    return {};
  }
  return fail(ErrorKind::kUnsupported,
              "{}: {}.type {}, expected Sequence, NFC, Prepend or Replace; this tokenizer is not supported", file, key,
              quote_for_error(*type));
}

Status Normalizer::add_replace(const nlohmann::json& entry, const std::string& key, std::string_view file) {
  const auto content = entry.find("content");
  if (content == entry.end() || !content->is_string()) {
    return fail(ErrorKind::kInvalidInput, "{}: {}.content, expected a text", file, key);
  }
  auto pattern = Pattern::from_json(entry, key, file);
  if (!pattern.ok()) return pattern.error();
  Step step;
  step.kind = Step::Kind::kReplace;
  step.pattern.push_back(std::move(*pattern));
  step.content = content->get<std::string>();
  steps_.push_back(std::move(step));
  return {};
}

Result<std::string> Normalizer::apply(std::string_view text, bool starts_text) const {
  std::string current(text);
  for (const Step& step : steps_) {
    switch (step.kind) {
      case Step::Kind::kNfc: {
        auto composed = to_nfc(current);
        if (!composed.ok()) return composed;
        current = std::move(*composed);
        break;
      }
      case Step::Kind::kPrepend:
        if (!current.empty() && (starts_text || !step.first_only)) current.insert(0, step.content);
        break;
      case Step::Kind::kReplace: {
        auto next = replaced(step.pattern[0], step.content, current);
        if (!next.ok()) return next;
        current = std::move(*next);
        break;
      }
    }
  }
  return current;
}

}  // namespace latte
