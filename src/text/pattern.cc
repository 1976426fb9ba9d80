#include "text/pattern.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/pattern_syntax.h"
#include "text/utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace latte {
namespace {

constexpr std::size_t kMaxPatternBytes = 1 << 16;
// Steps of one search. A sane expression takes a few per character; one that backtracks without end takes 2^n.
constexpr std::size_t kBaseMatchSteps = 1'000'000;
constexpr std::size_t kMatchStepsPerByte = 8;
constexpr std::uint32_t kMatchHeapKib = 256 * 1024;

struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeCompileContext {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

std::string error_text(int code) {
  PCRE2_UCHAR8 buffer[256] = {};
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Pattern::Code {
  explicit Code(pcre2_code* compiled) : code(compiled) {}
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() { pcre2_code_free(code); }

  pcre2_code* code;
  std::string expression;
};

Result<Pattern> Pattern::regex(std::string_view expression) {
  if (expression.size() > kMaxPatternBytes) {
    return fail(ErrorKind::kInvalidInput, "a regular expression of {} bytes, expected at most {}", expression.size(),
                kMaxPatternBytes);
  }
  const auto translated = to_pcre2_syntax(expression);
  if (!translated.ok()) return translated.error();
  const std::unique_ptr<pcre2_compile_context, FreeCompileContext> context(pcre2_compile_context_create(nullptr));
  if (context == nullptr) return fail(ErrorKind::kOutOfMemory, "no memory to compile a regular expression");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_max_pattern_length(context.get(), 8 * kMaxPatternBytes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // In the syntax of tokenizer.json ^ and $ mean the ends of a line.
  pcre2_code* compiled =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR8>(translated->data()), translated->size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error, &offset, context.get());
  if (compiled == nullptr) {
    return fail(ErrorKind::kInvalidInput, "regular expression {}: {} (byte {} of its PCRE2 form)",
                quote_for_error(expression), error_text(error), offset);
  }
  auto code = std::make_shared<Code>(compiled);
  code->expression = expression;
  // Without a just-in-time compiler for this machine the interpreter answers the same, more slowly.
  static_cast<void>(pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE));
  Pattern pattern;
  pattern.code_ = std::move(code);
  return pattern;
}

Result<Pattern> Pattern::from_json(const nlohmann::json& entry, std::string_view key, std::string_view file) {
  const auto pattern = entry.find("pattern");
  if (pattern == entry.end() || !pattern->is_object() || pattern->size() != 1 || !pattern->begin()->is_string() ||
      (pattern->begin().key() != "Regex" && pattern->begin().key() != "String")) {
    return fail(ErrorKind::kInvalidInput, "{}: {}.pattern, expected {{\"Regex\": ...}} or {{\"String\": ...}}", file,
                key);
  }
  const std::string& text = pattern->begin()->get_ref<const std::string&>();
  if (pattern->begin().key() == "String") return literal(text);
  auto compiled = regex(text);
  if (!compiled.ok()) return fail(ErrorKind::kInvalidInput, "{}: {}: {}", file, key, compiled.error().message);
  return compiled;
}

Pattern Pattern::literal(std::string_view text) {
  Pattern pattern;
  pattern.literal_ = text;
  return pattern;
}

Status Pattern::find_all(std::string_view text, std::vector<TextSpan>& matches) const {
  if (text.empty()) return {};
  if (code_ != nullptr) return find_regex(text, matches);
  if (literal_.empty()) return {};
  for (std::size_t at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, at)) {
    matches.push_back({at, at + literal_.size()});
    at += literal_.size();
  }
  return {};
}

Status Pattern::find_regex(std::string_view text, std::vector<TextSpan>& matches) const {
  const std::unique_ptr<pcre2_match_data, FreeMatchData> data(
      pcre2_match_data_create_from_pattern(code_->code, nullptr));
  const std::unique_ptr<pcre2_match_context, FreeMatchContext> context(pcre2_match_context_create(nullptr));
  if (data == nullptr || context == nullptr) return fail(ErrorKind::kOutOfMemory, "no memory to search a text");
  const std::size_t steps = kBaseMatchSteps + kMatchStepsPerByte * text.size();
  pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(
                                           std::min<std::size_t>(steps, std::numeric_limits<std::uint32_t>::max())));
  pcre2_set_heap_limit(context.get(), kMatchHeapKib);

  std::size_t from = 0;
  bool any = false;
  std::size_t last_match_end = 0;
  while (from <= text.size()) {
    const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
    int count = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (count == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter keeps its frames on the heap
      count = pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                          context.get());
    }
    if (count == PCRE2_ERROR_NOMATCH) return {};
    if (count < 0) {
      return fail(ErrorKind::kInvalidInput, "regular expression {} gave up on a text of {} bytes: {}",
                  quote_for_error(code_->expression), text.size(), error_text(count));
    }
    const PCRE2_SIZE* found = pcre2_get_ovector_pointer(data.get());
    const TextSpan match{found[0], found[1]};
    if (match.begin < from || match.end < match.begin || match.end > text.size()) {
      return fail(ErrorKind::kUnsupported, "regular expression {} moves the start of its match, which is not supported",
                  quote_for_error(code_->expression));
    }
    if (match.size() == 0 && any && match.end == last_match_end) {
      if (from >= text.size()) return {};
      from += decode_utf8(text, from).length;
      continue;
    }
    matches.push_back(match);
    any = true;
    from = last_match_end = match.end;
  }
  return {};
}

}  // namespace latte
