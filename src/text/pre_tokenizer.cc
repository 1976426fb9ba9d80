#include "text/pre_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/type_words.h"
#include "text/vocabulary.h"

namespace latte {
namespace {

// GPT-2's expression, which ByteLevel applies unless use_regex is false.
constexpr std::string_view kByteLevelRegex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

std::optional<SplitBehavior> behavior_named(std::string_view name) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return std::nullopt;
}

struct Part {
  TextSpan span;
  bool is_match;
};

std::vector<Part> parts_of(std::size_t length, const std::vector<TextSpan>& matches, bool invert) {
  std::vector<Part> parts;
  std::size_t previous = 0;
  for (const TextSpan& match : matches) {
    if (previous != match.begin) parts.push_back({{previous, match.begin}, invert});
    parts.push_back({match, !invert});
    previous = match.end;
  }
  if (previous != length) parts.push_back({{previous, length}, invert});
  return parts;
}

// Joins each part to the one before it (in the order given) where `joins(part is a match, part before is one)` says so.
template <class Joins>
std::vector<TextSpan> join_parts(const std::vector<Part>& parts, Joins joins) {
  std::vector<TextSpan> spans;
  bool previous_match = false;
  for (const Part& part : parts) {
    if (joins(part.is_match, previous_match) && !spans.empty()) {
      spans.back() = {std::min(spans.back().begin, part.span.begin), std::max(spans.back().end, part.span.end)};
    } else {
      spans.push_back(part.span);
    }
    previous_match = part.is_match;
  }
  return spans;
}

}  // namespace

std::vector<TextSpan> split_at_matches(std::size_t length, const std::vector<TextSpan>& matches, SplitBehavior behavior,
                                       bool invert) {
  std::vector<Part> parts = parts_of(length, matches, invert);
  const auto follows_text = [](bool is_match, bool previous_match) { return is_match && !previous_match; };
  std::vector<TextSpan> spans;
  switch (behavior) {
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      spans = join_parts(parts, [](bool, bool) { return false; });
      break;
    case SplitBehavior::kIsolated:
      spans = join_parts(parts, [](bool, bool) { return false; });
      break;
    case SplitBehavior::kMergedWithPrevious:
      spans = join_parts(parts, follows_text);
      break;
    case SplitBehavior::kMergedWithNext:
      std::reverse(parts.begin(), parts.end());
      spans = join_parts(parts, follows_text);
      std::reverse(spans.begin(), spans.end());
      break;
    case SplitBehavior::kContiguous:
      spans = join_parts(parts, [](bool is_match, bool previous_match) { return is_match == previous_match; });
      break;
  }
  std::erase_if(spans, [](const TextSpan& span) { return span.size() == 0; });
  return spans;
}

Result<PreTokenizer> PreTokenizer::parse(const nlohmann::json& entry, bool byte_level, std::string_view file) {
  PreTokenizer result;
  if (!entry.is_null()) {
    const Status added = result.add(entry, "pre_tokenizer", file, 0);
    if (!added.ok()) return added.error();
  }
  if (result.byte_level_ != byte_level) {
    return fail(ErrorKind::kUnsupported, "{}: pre_tokenizer has {} ByteLevel, expected {} with this decoder", file,
                byte_level ? "no" : "a", byte_level ? "one at its end" : "none");
  }
  return result;
}

Result<PreTokenizer> PreTokenizer::isolating(std::string_view expression) {
  PreTokenizer result;
  const Status added = result.add_regex(expression, SplitBehavior::kIsolated, "pre_tokenizer", "(built in)");
  if (!added.ok()) return added.error();
  return result;
}

Status PreTokenizer::add(const nlohmann::json& entry, const std::string& key, std::string_view file, int depth) {
  const auto type = json_type_name(entry, key, file);
  if (!type.ok()) return type.error();
  if (byte_level_) {
    return fail(ErrorKind::kUnsupported, "{}: {} ({}) follows ByteLevel, expected ByteLevel to be the last", file, key,
                quote_for_error(*type));
  }
  if (*type == "Sequence") {
    const auto members = entry.find("pretokenizers");
    if (members == entry.end() || !members->is_array() || depth >= kMostSequences) {
      return fail(ErrorKind::kInvalidInput, "{}: {}.pretokenizers, expected a list nested at most {} times", file, key,
                  kMostSequences);
    }
    std::size_t index = 0;
    for (const nlohmann::json& member : *members) {
      const Status added = add(member, fmt::format("{}.pretokenizers[{}]", key, index++), file, depth + 1);
      if (!added.ok()) return added.error();
    }
    return {};
  }
  if (*type == "Split") return add_split(entry, key, file);
  if (*type == "ByteLevel") return add_byte_level(entry, key, file);
  if (*type == "Metaspace") return add_metaspace(entry, key, file);
  if (*type == "Digits") {
    const auto individual = json_bool(entry, "individual_digits", false, key, file);
    if (!individual.ok()) return individual.error();
    return add_regex(R"(\p{N})", *individual ? SplitBehavior::kIsolated : SplitBehavior::kContiguous, key, file);
  }
  if (*type == "Whitespace") {
    const Status added = add_regex(R"(\w+|[^\w\s]+)", SplitBehavior::kRemoved, key, file);
    if (added.ok()) steps_.back().invert = true;
    return added;
  }
  if (*type == "WhitespaceSplit") return add_regex(R"(\s)", SplitBehavior::kRemoved, key, file);
  return fail(
      ErrorKind::kUnsupported,
      "{}: {}.type {}, expected Sequence, Split, ByteLevel, Metaspace, Digits, Whitespace or WhitespaceSplit; this "
      "tokenizer is not supported",
      file, key, quote_for_error(*type));
}

Status PreTokenizer::add_regex(std::string_view expression, SplitBehavior behavior, const std::string& key,
                               std::string_view file) {
  auto pattern = Pattern::regex(expression);
  if (!pattern.ok()) return fail(ErrorKind::kInvalidInput, "{}: {}: {}", file, key, pattern.error().message);
  Step step;
  step.pattern.push_back(std::move(*pattern));
  step.behavior = behavior;
  steps_.push_back(std::move(step));
  return {};
}

Status PreTokenizer::add_split(const nlohmann::json& entry, const std::string& key, std::string_view file) {
  const auto behavior_name = entry.find("behavior");
  const auto behavior = behavior_name != entry.end() && behavior_name->is_string()
                            ? behavior_named(behavior_name->get_ref<const std::string&>())
                            : std::nullopt;
  if (!behavior.has_value()) {
    return fail(ErrorKind::kInvalidInput,
                "{}: {}.behavior, expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", file,
                key);
  }
  const auto invert = json_bool(entry, "invert", false, key, file);
  if (!invert.ok()) return invert.error();
  auto pattern = Pattern::from_json(entry, key, file);
  if (!pattern.ok()) return pattern.error();
  Step step;
  step.pattern.push_back(std::move(*pattern));
  step.behavior = *behavior;
  step.invert = *invert;
  steps_.push_back(std::move(step));
  return {};
}

Status PreTokenizer::add_metaspace(const nlohmann::json& entry, const std::string& key, std::string_view file) {
  const auto text_of = [&](const char* member, const char* fallback) -> Result<std::string> {
    const auto found = entry.find(member);
    if (found == entry.end() || found->is_null()) return std::string(fallback);
    if (found->is_string()) return found->get<std::string>();
    return fail(ErrorKind::kInvalidInput, "{}: {}.{} is {}, expected a text", file, key, member,
                with_article(found->type_name()));
  };
  const auto replacement = text_of("replacement", kMetaspaceText.data());
  if (!replacement.ok()) return replacement.error();
  const auto add_prefix = json_bool(entry, "add_prefix_space", true, key, file);
  if (!add_prefix.ok()) return add_prefix.error();
  const auto scheme = text_of("prepend_scheme", *add_prefix ? "always" : "never");
  if (!scheme.ok()) return scheme.error();
  const auto split = json_bool(entry, "split", true, key, file);
  if (!split.ok()) return split.error();
  if (*scheme != "always" && *scheme != "first" && *scheme != "never") {
    return fail(ErrorKind::kInvalidInput, "{}: {}.prepend_scheme {}, expected always, first or never", file, key,
                quote_for_error(*scheme));
  }
  if (*replacement != kMetaspaceText) {
    return fail(ErrorKind::kUnsupported, "{}: {}.replacement {}, expected U+2581", file, key,
                quote_for_error(*replacement));
  }
  Step step;
  step.space = *replacement;
  step.prefix = *scheme == "always" ? Prefix::kAlways : *scheme == "first" ? Prefix::kFirst : Prefix::kNever;
  step.behavior = SplitBehavior::kMergedWithNext;
  if (*split) step.pattern.push_back(Pattern::literal(*replacement));
  steps_.push_back(std::move(step));
  return {};
}

Status PreTokenizer::add_byte_level(const nlohmann::json& entry, const std::string& key, std::string_view file) {
  const auto prefix = json_bool(entry, "add_prefix_space", true, key, file);
  if (!prefix.ok()) return prefix.error();
  const auto use_regex = json_bool(entry, "use_regex", true, key, file);
  if (!use_regex.ok()) return use_regex.error();
  if (*use_regex) {
    const Status added = add_regex(kByteLevelRegex, SplitBehavior::kIsolated, key, file);
    if (!added.ok()) return added.error();
    steps_.back().prefix = *prefix ? Prefix::kAlways : Prefix::kNever;
  } else if (*prefix) {
    Step step;
    step.prefix = Prefix::kAlways;
    steps_.push_back(std::move(step));
  }
  byte_level_ = true;
  return {};
}

// Spaces and the prefix of a step, in every piece.
void PreTokenizer::respace(const Step& step, bool starts_text, PreTokenizedText& split) {
  const bool replaces = step.space != " ";
  if (step.prefix == Prefix::kNever && !replaces) return;
  PreTokenizedText changed;
  for (const TextSpan& piece : split.pieces) {
    const std::string_view text = std::string_view(split.text).substr(piece.begin, piece.size());
    const std::size_t begin = changed.text.size();
    const bool prefixed = text.starts_with(step.space) || (replaces && text.front() == ' ');
    const bool wanted =
        step.prefix == Prefix::kAlways || (step.prefix == Prefix::kFirst && starts_text && piece.begin == 0);
    if (wanted && !prefixed) changed.text.append(step.space);
    for (const char c : text) {
      if (c == ' ') {
        changed.text.append(step.space);
      } else {
        changed.text.push_back(c);
      }
    }
    changed.pieces.push_back({begin, changed.text.size()});
  }
  split = std::move(changed);
}

Result<PreTokenizedText> PreTokenizer::split(std::string_view text, bool starts_text) const {
  PreTokenizedText result;
  result.text = text;
  if (!text.empty()) result.pieces.push_back({0, text.size()});
  std::vector<TextSpan> matches;
  for (const Step& step : steps_) {
    respace(step, starts_text, result);
    if (step.pattern.empty()) continue;
    std::vector<TextSpan> pieces;
    pieces.reserve(result.pieces.size());
    for (const TextSpan& piece : result.pieces) {
      matches.clear();
      const Status found =
          step.pattern[0].find_all(std::string_view(result.text).substr(piece.begin, piece.size()), matches);
      if (!found.ok()) return found.error();
      for (const TextSpan& part : split_at_matches(piece.size(), matches, step.behavior, step.invert)) {
        pieces.push_back({piece.begin + part.begin, piece.begin + part.end});
      }
    }
    result.pieces = std::move(pieces);
  }
  return result;
}

}  // namespace latte
