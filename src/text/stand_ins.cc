#include "text/stand_ins.h"

#include "base/fail.h"
#include "text/utf8.h"

namespace latte {
namespace {

// Ideographs of extension B: letters without case, kept as they are by every normal form, by repr() and by strip(), and
// seldom written.
constexpr char32_t kFirst = 0x20000;
constexpr char32_t kLast = 0x2A6DF;

bool is_candidate(char32_t c) { return c >= kFirst && c <= kLast; }

}  // namespace

void StandIns::avoid(std::string_view text) {
  taken_.resize(kLast - kFirst + 1);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    if (is_candidate(step.code_point)) taken_[step.code_point - kFirst] = true;
    at += step.length;
  }
}

Result<char32_t> StandIns::stand_in(char32_t original) {
  const auto known = stand_ins_.find(original);
  if (known != stand_ins_.end()) return known->second;
  taken_.resize(kLast - kFirst + 1);
  while (next_ < taken_.size() && taken_[next_]) ++next_;
  if (next_ == taken_.size()) {
    return fail(ErrorKind::kInvalidInput,
                "[chat] the messages use every ideograph of U+20000 to U+2A6DF and spell a special token, expected "
                "messages without one");
  }
  const auto chosen = static_cast<char32_t>(kFirst + next_++);
  stand_ins_.emplace(original, chosen);
  originals_.emplace(chosen, original);
  return chosen;
}

Result<std::string> StandIns::hide(std::string_view text, const std::vector<std::size_t>& places) {
  std::string hidden;
  std::size_t from = 0;
  for (const std::size_t place : places) {
    const Utf8Step step = decode_utf8(text, place);
    const Result<char32_t> chosen = stand_in(step.code_point);
    if (!chosen.ok()) return chosen.error();
    hidden.append(text.substr(from, place - from));
    append_utf8(hidden, *chosen);
    from = place + step.length;
  }
  hidden.append(text.substr(from));
  return hidden;
}

std::string StandIns::all() const {
  std::string text;
  for (const auto& [chosen, original] : originals_) append_utf8(text, chosen);
  return text;
}

std::string StandIns::reveal(std::string_view text) const {
  std::string revealed;
  revealed.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = decode_utf8(text, at);
    const auto original = is_candidate(step.code_point) ? originals_.find(step.code_point) : originals_.end();
    if (original == originals_.end()) {
      revealed.append(text.substr(at, step.length));
    } else {
      append_utf8(revealed, original->second);
    }
    at += step.length;
  }
  return revealed;
}

}  // namespace latte
