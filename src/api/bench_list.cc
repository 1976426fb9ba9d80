#include <charconv>
#include <optional>

#include "base/fail.h"
#include "latte/bench.h"

namespace latte {
namespace {

constexpr int kMostRows = 1 << 24;
constexpr std::size_t kMostNumbers = 1000;

/// The number at the front of `text`, which loses it.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || text.starts_with('-') || value > kMostRows) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take_sign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

/// One part between commas: a number, or first-last with +step or *mult. False when it is none.
bool add_part(std::string_view part, std::vector<int>& numbers) {
  const std::optional<int> first = take_number(part);
  if (!first.has_value()) return false;
  if (part.empty()) {
    numbers.push_back(*first);
    return numbers.size() <= kMostNumbers;
  }
  if (!take_sign(part, '-')) return false;
  const std::optional<int> last = take_number(part);
  if (!last.has_value() || *last < *first) return false;
  const bool multiplies = part.starts_with('*');
  std::int64_t step = 1;
  if (!part.empty()) {
    if (!take_sign(part, multiplies ? '*' : '+')) return false;
    const std::optional<int> given = take_number(part);
    if (!given.has_value() || !part.empty()) return false;
    step = *given;
  }
  if (multiplies ? step < 2 || *first == 0 : step < 1) return false;  // else it would not end
  for (std::int64_t value = *first; value <= *last; value = multiplies ? value * step : value + step) {
    numbers.push_back(static_cast<int>(value));
    if (numbers.size() > kMostNumbers) return false;
  }
  return true;
}

}  // namespace

Result<std::vector<int>> parse_bench_list(std::string_view text) {
  std::vector<int> numbers;
  for (std::string_view rest = text;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    if (!add_part(part, numbers)) {
      return fail(ErrorKind::kInvalidInput,
                  "\"{}\": expected a number up to {}, first-last+step or first-last*mult, several with commas between "
                  "(like 128,512 or 1-16*2), at most {} numbers in all",
                  part, kMostRows, kMostNumbers);
    }
    if (part.size() == rest.size()) return numbers;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace latte
