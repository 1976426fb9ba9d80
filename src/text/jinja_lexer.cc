#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/utf8.h"

namespace latte::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

std::string with_plain_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t at = 0; at < source.size(); ++at) {
    if (source[at] != '\r') {
      text.push_back(source[at]);
      continue;
    }
    text.push_back('\n');
    if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Utf8Step step = decode_utf8(text, at);
    if (!is_space(step.code_point, true)) break;
    at += step.length;
  }
  return at;
}

std::size_t strip_space_before(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t previous = previous_code_point(text, end);
    if (!is_space(decode_utf8(text, previous).code_point, true)) break;
    end = previous;
  }
  return end;
}

// What a template holds between two pieces of text.
enum class Opening { kBlock, kVariable, kComment };

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) {
      const Status step = text_and_tag();
      if (!step.ok()) return step.error();
    }
    add(TokenKind::kEnd, {});
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool starts(std::size_t at, std::string_view text) const {
    return std::string_view(source_).substr(at, text.size()) == text;
  }

  void add(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  void add_text(std::string_view text) {
    if (!text.empty()) add(TokenKind::kText, std::string(text));
  }

  // Moves on, counting lines.
  void advance_to(std::size_t at) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    at_ = at;
  }

  Error error(std::string_view what) const { return fail(ErrorKind::kInvalidInput, "line {}: {}", line_, what); }

  std::size_t find_opening(std::size_t from) const {
    for (std::size_t at = source_.find('{', from); at != std::string::npos; at = source_.find('{', at + 1)) {
      if (at + 1 < source_.size() && (source_[at + 1] == '%' || source_[at + 1] == '{' || source_[at + 1] == '#'))
        return at;
    }
    return std::string::npos;
  }

  // Text up to the next tag with the white space that the tag's sign and lstrip_blocks take from its end.
  std::string_view text_before(std::size_t open, Opening kind, char sign) const {
    const std::string_view text = std::string_view(source_).substr(at_, open - at_);
    if (sign == '-') return text.substr(0, strip_space_before(text, text.size()));
    if (sign == '+' || kind == Opening::kVariable) return text;
    const std::size_t newline = text.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? 0 : newline + 1;
    if (line_begin == 0 && !at_line_start_) return text;
    return skip_space(text, line_begin) == text.size() ? text.substr(0, line_begin) : text;
  }

  Status text_and_tag() {
    const std::size_t open = find_opening(at_);
    if (open == std::string::npos) {
      add_text(rest());
      advance_to(source_.size());
      return {};
    }
    const char mark = source_[open + 1];
    const Opening kind = mark == '%' ? Opening::kBlock : mark == '{' ? Opening::kVariable : Opening::kComment;
    const char next = open + 2 < source_.size() ? source_[open + 2] : ' ';
    const char sign = next == '-' || next == '+' ? next : ' ';
    add_text(text_before(open, kind, sign));
    advance_to(open);
    const std::size_t inside = open + 2 + (sign != ' ' ? 1 : 0);
    if (kind == Opening::kComment) return comment(inside);
    if (kind == Opening::kBlock) {
      if (const auto body = raw_body(inside)) return raw_block(*body);
    }
    add(kind == Opening::kBlock ? TokenKind::kBlockBegin : TokenKind::kVariableBegin, {});
    advance_to(inside);
    return tag(kind);
  }

  // Leaves a tag: what its end swallows, and whether a new line starts there.
  void leave_tag(std::size_t end, bool strips, bool trims_newline) {
    if (strips) end = skip_space(source_, end);
    if (!strips && trims_newline && end < source_.size() && source_[end] == '\n') ++end;
    at_line_start_ = end > 0 && source_[end - 1] == '\n';
    advance_to(end);
  }

  Status comment(std::size_t inside) {
    const std::size_t close = source_.find("#}", inside);
    if (close == std::string::npos) return error("a comment is not closed, expected #}");
    const char sign = close > inside ? source_[close - 1] : ' ';
    leave_tag(close + 2, sign == '-', sign != '+');
    return {};
  }

  // The start of a raw block's text when the tag that begins before `inside` is {% raw %}.
  std::optional<std::size_t> raw_body(std::size_t inside) const {
    std::size_t at = skip_space(source_, inside);
    if (!starts(at, "raw")) return std::nullopt;
    at = skip_space(source_, at + 3);
    if (starts(at, "-%}")) return skip_space(source_, at + 3);
    if (starts(at, "%}")) return at + 2;
    return std::nullopt;
  }

  Status raw_block(std::size_t body) {
    advance_to(body);
    at_line_start_ = body > 0 && source_[body - 1] == '\n';
    for (std::size_t open = source_.find("{%", body); open != std::string::npos; open = source_.find("{%", open + 2)) {
      std::size_t at = open + 2;
      const char sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : ' ';
      if (sign != ' ') ++at;
      at = skip_space(source_, at);
      if (!starts(at, "endraw")) continue;
      at = skip_space(source_, at + 6);
      const char end_sign = starts(at, "-%}") ? '-' : starts(at, "+%}") ? '+' : ' ';
      if (end_sign != ' ') ++at;
      if (!starts(at, "%}")) continue;
      add_text(text_before(open, Opening::kBlock, sign));
      leave_tag(at + 2, end_sign == '-', end_sign != '+');
      return {};
    }
    return error("a raw block is not closed, expected {% endraw %}");
  }

  Status tag(Opening kind) {
    const std::string_view close = kind == Opening::kBlock ? "%}" : "}}";
    std::vector<char> brackets;
    while (true) {
      if (at_ >= source_.size()) return error(fmt::format("a tag is not closed, expected {}", close));
      if (brackets.empty()) {
        const bool signed_end =
            (source_[at_] == '-' || (source_[at_] == '+' && kind == Opening::kBlock)) && starts(at_ + 1, close);
        if (signed_end || starts(at_, close)) {
          const char sign = signed_end ? source_[at_] : ' ';
          add(kind == Opening::kBlock ? TokenKind::kBlockEnd : TokenKind::kVariableEnd, {});
          leave_tag(at_ + close.size() + (signed_end ? 1 : 0), sign == '-', kind == Opening::kBlock && sign != '+');
          return {};
        }
      }
      const std::size_t after_space = skip_space(source_, at_);
      if (after_space != at_) {
        advance_to(after_space);
        continue;
      }
      const Status read = tag_token(brackets);
      if (!read.ok()) return read;
    }
  }

  Status tag_token(std::vector<char>& brackets) {
    const char c = source_[at_];
    if (is_digit(c)) return number();
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < source_.size() && is_name_part(source_[end])) ++end;
      add(TokenKind::kName, source_.substr(at_, end - at_));
      advance_to(end);
      return {};
    }
    if (c == '"' || c == '\'') return string_literal(c);
    static constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                                    "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                                    ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    const auto* symbol =
        std::find_if(kOperators.begin(), kOperators.end(), [this](std::string_view text) { return starts(at_, text); });
    if (symbol == kOperators.end()) {
      return error(
          fmt::format("unexpected character {}", quote_for_error(rest().substr(0, decode_utf8(source_, at_).length))));
    }
    if (c == '(' || c == '[' || c == '{') brackets.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) return error(fmt::format("unexpected '{}'", c));
      brackets.pop_back();
    }
    add(TokenKind::kOperator, std::string(*symbol));
    advance_to(at_ + symbol->size());
    return {};
  }

  // Digits with single underscores between them, from `at` on.
  std::size_t digits_end(std::size_t at) const {
    while (at < source_.size() && (is_digit(source_[at]) || (source_[at] == '_' && at + 1 < source_.size() &&
                                                             is_digit(source_[at + 1]) && is_digit(source_[at - 1])))) {
      ++at;
    }
    return at;
  }

  Status number() {
    int base = 10;
    if (source_[at_] == '0' && at_ + 1 < source_.size()) {
      const char prefix = static_cast<char>(source_[at_ + 1] | 0x20);
      base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    }
    std::size_t end = base == 10 ? digits_end(at_) : at_ + 2;
    while (base != 10 && end < source_.size() && (is_name_part(source_[end]))) ++end;
    bool is_float = false;
    if (base == 10) {
      if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
        is_float = true;
        end = digits_end(end + 1);
      }
      std::size_t exponent = end;
      if (exponent < source_.size() && (source_[exponent] | 0x20) == 'e') {
        ++exponent;
        if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) ++exponent;
        if (exponent < source_.size() && is_digit(source_[exponent])) {
          is_float = true;
          end = digits_end(exponent);
        }
      }
    }
    std::string digits = source_.substr(at_, end - at_);
    std::erase(digits, '_');
    Token token;
    token.kind = is_float ? TokenKind::kFloat : TokenKind::kInteger;
    token.text = digits;
    token.line = line_;
    const char* first = digits.data() + (base == 10 ? 0 : 2);
    const char* last = digits.data() + digits.size();
    const auto parsed =
        is_float ? std::from_chars(first, last, token.number) : std::from_chars(first, last, token.integer, base);
    if (parsed.ec != std::errc() || parsed.ptr != last) {
      return error(fmt::format("number {}, expected one that fits 64 bits", quote_for_error(digits)));
    }
    tokens_.push_back(std::move(token));
    advance_to(end);
    return {};
  }

  Status string_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return error("a string is not closed");
    const std::string_view body = std::string_view(source_).substr(at_ + 1, end - at_ - 1);
    std::string text;
    for (std::size_t at = 0; at < body.size();) {
      if (body[at] != '\\') {
        text.push_back(body[at++]);
        continue;
      }
      const Status resolved = escape(body, at, text);
      if (!resolved.ok()) return resolved;
    }
    add(TokenKind::kString, std::move(text));
    advance_to(end + 1);
    return {};
  }

  // Python's escapes; an unknown one stays as it is, backslash included.
  Status escape(std::string_view body, std::size_t& at, std::string& text) const {
    static constexpr std::string_view kNames = "abfnrtv\\'\"";
    static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
    const char kind = body[at + 1];  // the search for the closing quote made sure that it is there
    if (const std::size_t known = kNames.find(kind); known != std::string_view::npos) {
      text.push_back(kValues[known]);
      at += 2;
      return {};
    }
    if (kind == '\n') {
      at += 2;
      return {};
    }
    if (kind == 'x' || kind == 'u' || kind == 'U') {
      const std::size_t count = kind == 'x' ? 2 : kind == 'u' ? 4 : 8;
      const std::string_view digits = body.substr(at + 2, count);
      std::uint32_t value = 0;
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
      if (digits.size() != count || parsed.ec != std::errc() || parsed.ptr != digits.data() + count) {
        return error(fmt::format("escape \\{} in a string, expected {} hexadecimal digits after it", kind, count));
      }
      append_utf8(text, value);
      at += 2 + count;
      return {};
    }
    if (kind >= '0' && kind <= '7') {
      char32_t value = 0;
      std::size_t end = at + 1;
      while (end < body.size() && end < at + 4 && body[end] >= '0' && body[end] <= '7') {
        value = value * 8 + static_cast<char32_t>(body[end++] - '0');
      }
      append_utf8(text, value);
      at = end;
      return {};
    }
    text.push_back('\\');
    ++at;
    return {};
  }

  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(with_plain_newlines(source)).run(); }

}  // namespace latte::jinja
