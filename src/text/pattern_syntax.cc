#include "text/pattern_syntax.h"

#include <cctype>
#include <vector>

#include "base/fail.h"

namespace latte {
namespace {

constexpr int kMaxClassNesting = 16;
// PCRE2's own \s also takes U+180E, and its \w leaves out marks and connectors.
constexpr std::string_view kSpaceItems =
    R"(\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWordItems = R"(\p{L}\p{M}\p{N}\p{Pc})";
constexpr std::string_view kHexItems = "0-9a-fA-F";

// A class is the intersection of its operands; an operand is plain items, nested classes, or both.
struct ClassOperand {
  std::string items;
  std::vector<std::string> nested;  // complete sub-expressions, each matching one character

  bool empty() const { return items.empty() && nested.empty(); }

  std::string expression() const {
    std::string text = items.empty() ? std::string() : "[" + items + "]";
    for (const std::string& member : nested) text += (text.empty() ? "" : "|") + member;
    return nested.size() + (items.empty() ? 0 : 1) > 1 ? "(?:" + text + ")" : text;
  }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> run() {
    std::string out;
    while (at_ < pattern_.size()) {
      if (pattern_[at_] == '[') {
        const auto text = character_class(0);
        if (!text.ok()) return text.error();
        out += *text;
      } else if (pattern_[at_] == '\\') {
        const auto text = escape(false);
        if (!text.ok()) return text.error();
        out += *text;
      } else {
        out += pattern_[at_++];
      }
    }
    return out;
  }

 private:
  bool at_text(std::string_view text) const { return pattern_.substr(at_, text.size()) == text; }

  static std::string set(std::string_view items, bool negated, bool in_class) {
    if (!in_class) return (negated ? "[^" : "[") + std::string(items) + "]";
    return std::string(items);
  }

  // One escape, from the backslash on. Inside a class the result is class items.
  Result<std::string> escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) {
      return fail(ErrorKind::kInvalidInput, "the pattern ends in a lone backslash, expected an escape");
    }
    const char kind = pattern_[at_ + 1];
    if (kind == 's' || kind == 'w' || kind == 'h') {
      at_ += 2;
      return set(kind == 's' ? kSpaceItems : kind == 'w' ? kWordItems : kHexItems, false, in_class);
    }
    // Inside a class a complement cannot be spelled as items; PCRE2's own differs by a character or two at most.
    if ((kind == 'S' || kind == 'W') && !in_class) {
      at_ += 2;
      return set(kind == 'S' ? kSpaceItems : kWordItems, true, false);
    }
    if (kind == 'u') return unicode_escape();
    if (kind == 'p' || kind == 'P') return property();
    const std::string text(pattern_.substr(at_, 2));
    at_ += 2;
    return text;
  }

  Result<std::string> unicode_escape() {
    const std::string digits(pattern_.substr(at_ + 2, 4));
    bool hex = digits.size() == 4;
    for (const char digit : digits) hex = hex && std::isxdigit(static_cast<unsigned char>(digit)) != 0;
    if (!hex) {
      return fail(ErrorKind::kInvalidInput, "\\u at byte {} of the pattern, expected four hexadecimal digits after it",
                  at_);
    }
    at_ += 6;
    return "\\x{" + digits + "}";
  }

  // \p{Name}: names of one or two letters are categories in both engines. PCRE2 takes a longer one for the script with
  // its extensions, the other engine for the script alone.
  Result<std::string> property() {
    const std::size_t close = pattern_.find('}', at_);
    if (at_ + 2 >= pattern_.size() || pattern_[at_ + 2] != '{' || close == std::string_view::npos) {
      const std::string text(pattern_.substr(at_, 2));
      at_ += 2;
      return text;
    }
    std::string start(pattern_.substr(at_, 3));
    std::string name(pattern_.substr(at_ + 3, close - at_ - 3));
    at_ = close + 1;
    if (!name.empty() && name[0] == '^') {
      start += '^';
      name.erase(0, 1);
    }
    const std::string_view category = long_category(name);
    if (!category.empty()) return start + std::string(category) + "}";
    const bool script =
        name.size() > 2 && name != "Any" && name != "L&" && name.find_first_of(":=") == std::string::npos;
    return start + (script ? "sc:" : "") + name + "}";
  }

  static std::string_view long_category(std::string_view name) {
    if (name == "Letter" || name == "Alpha") return "L";
    if (name == "Mark") return "M";
    if (name == "Number") return "N";
    if (name == "Digit") return "Nd";
    if (name == "Punctuation" || name == "Punct") return "P";
    if (name == "Symbol") return "S";
    if (name == "Separator") return "Z";
    if (name == "Other") return "C";
    if (name == "Upper") return "Lu";
    if (name == "Lower") return "Ll";
    return {};
  }

  // A class from its opening bracket on, as an expression that matches one character.
  Result<std::string> character_class(int depth) {
    if (depth >= kMaxClassNesting) {
      return fail(ErrorKind::kInvalidInput, "character classes nested deeper than {} at byte {} of the pattern",
                  kMaxClassNesting, at_);
    }
    const std::size_t open = at_++;
    const bool negated = at_ < pattern_.size() && pattern_[at_] == '^';
    if (negated) ++at_;
    std::vector<ClassOperand> operands(1);
    for (bool first = true; at_ < pattern_.size(); first = false) {
      ClassOperand& operand = operands.back();
      if (pattern_[at_] == ']' && !first) {
        ++at_;
        return finish_class(operands, negated, open);
      }
      if (at_text("&&")) {
        at_ += 2;
        operands.emplace_back();
      } else if (at_text("[:")) {
        const std::size_t close = pattern_.find(":]", at_);
        if (close == std::string_view::npos) break;
        operand.items += pattern_.substr(at_, close + 2 - at_);
        at_ = close + 2;
      } else if (pattern_[at_] == '[') {
        auto nested = character_class(depth + 1);
        if (!nested.ok()) return nested.error();
        operand.nested.push_back(std::move(*nested));
      } else if (pattern_[at_] == '\\') {
        const auto text = escape(true);
        if (!text.ok()) return text.error();
        operand.items += *text;
      } else {
        if (pattern_[at_] == ']' || (pattern_[at_] == '^' && operand.items.empty())) operand.items += '\\';
        operand.items += pattern_[at_++];
      }
    }
    return fail(ErrorKind::kInvalidInput, "the character class opened at byte {} of the pattern is not closed", open);
  }

  static Result<std::string> finish_class(const std::vector<ClassOperand>& operands, bool negated, std::size_t open) {
    for (const ClassOperand& operand : operands) {
      if (operand.empty()) {
        return fail(ErrorKind::kInvalidInput, "the character class at byte {} of the pattern has an empty part", open);
      }
    }
    if (operands.size() == 1 && operands[0].nested.empty()) {
      return (negated ? "[^" : "[") + operands[0].items + "]";
    }
    std::string text;
    for (std::size_t i = 1; i < operands.size(); ++i) text += "(?=" + operands[i].expression() + ")";
    text += operands[0].expression();
    if (negated) return "(?:(?!" + text + ")(?s:.))";
    return operands.size() > 1 ? "(?:" + text + ")" : text;
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::string> to_pcre2_syntax(std::string_view pattern) { return Translator(pattern).run(); }

}  // namespace latte
