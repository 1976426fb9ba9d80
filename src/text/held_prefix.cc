#include "text/held_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "text/stand_ins.h"
#include "text/stream_decoder.h"
#include "text/utf8.h"

namespace latte {
namespace {

/// A border between tokens that is one between characters, too.
struct Border {
  std::size_t bytes = 0;   ///< of text before it
  std::size_t tokens = 0;  ///< ids before it
};

struct Spelled {
  std::string text;
  std::vector<Border> borders;  ///< ascending
};

Spelled spell(const Tokenizer& tokenizer, std::span<const std::int32_t> ids) {
  Spelled spelled;
  spelled.borders.push_back({});
  StreamDecoder decoder(tokenizer);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    spelled.text += decoder.push(ids[i]);
    StreamDecoder ended = decoder;
    if (ended.finish().empty()) spelled.borders.push_back({spelled.text.size(), i + 1});
  }
  spelled.text += decoder.finish();
  return spelled;
}

/// The last border at `bytes`: tokens without a text stay with what is before them.
std::optional<Border> border_at(const Spelled& spelled, std::size_t bytes) {
  const auto past = std::upper_bound(spelled.borders.begin(), spelled.borders.end(), bytes,
                                     [](std::size_t wanted, const Border& border) { return wanted < border.bytes; });
  if (past == spelled.borders.begin() || std::prev(past)->bytes != bytes) return std::nullopt;
  return *std::prev(past);
}

/// Where the text that `hidden` stands for has had `bytes` bytes.
std::size_t place_in_hidden(std::string_view hidden, const StandIns& stand_ins, std::size_t bytes) {
  std::size_t at = 0;
  for (std::size_t told = 0; at < hidden.size() && told < bytes;) {
    const std::size_t length = decode_utf8(hidden, at).length;
    told += stand_ins.reveal(hidden.substr(at, length)).size();
    at += length;
  }
  return at;
}

std::string excerpt(std::string_view text, std::size_t from) {
  constexpr std::size_t kShown = 24;
  std::string shown = replace_invalid_utf8(text.substr(from, kShown));
  std::string quoted = "\"";
  for (const char c : shown) quoted += c == '\n' ? std::string("\\n") : std::string(1, c);
  return quoted + (from + kShown < text.size() ? "...\"" : "\"");
}

void append(std::vector<std::int32_t>& ids, std::span<const std::int32_t> more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace

Result<HeldPrefix> continue_held(const Tokenizer& tokenizer, std::string_view prompt, const StandIns* stand_ins,
                                 std::span<const std::int32_t> held) {
  Result<std::vector<std::int32_t>> fresh = tokenizer.encode(prompt, {.match_special = true, .stand_ins = stand_ins});
  if (!fresh.ok()) return fresh.error();
  if (held.empty()) return HeldPrefix{.ids = std::move(*fresh), .kept = 0, .reason = ""};
  const Spelled old_way = spell(tokenizer, held);
  const Spelled new_way = spell(tokenizer, *fresh);
  const std::size_t shorter = std::min(old_way.text.size(), new_way.text.size());
  const auto parted = std::mismatch(old_way.text.begin(), old_way.text.begin() + static_cast<std::ptrdiff_t>(shorter),
                                    new_way.text.begin());
  const auto common = static_cast<std::size_t>(parted.first - old_way.text.begin());

  HeldPrefix result;
  if (common == old_way.text.size()) {
    const std::optional<Border> border = border_at(new_way, common);
    const std::string revealed = stand_ins != nullptr ? stand_ins->reveal(prompt) : std::string(prompt);
    if (border.has_value() || revealed == new_way.text) {
      result.kept = static_cast<int>(held.size());
      result.ids.assign(held.begin(), held.end());
      if (border.has_value()) {
        append(result.ids, std::span<const std::int32_t>(*fresh).subspan(border->tokens));
        return result;
      }
      const std::size_t from = stand_ins != nullptr ? place_in_hidden(prompt, *stand_ins, common) : common;
      const auto rest = tokenizer.encode(prompt.substr(from), {.match_special = true, .stand_ins = stand_ins});
      if (!rest.ok()) return rest.error();
      append(result.ids, *rest);
      return result;
    }
  }
  Border old_border, new_border;
  for (auto border = old_way.borders.rbegin(); border != old_way.borders.rend(); ++border) {
    if (border->bytes > common) continue;
    const std::optional<Border> twin = border_at(new_way, border->bytes);
    if (!twin.has_value()) continue;
    old_border = *border;
    new_border = *twin;
    break;
  }
  result.kept = static_cast<int>(old_border.tokens);
  result.ids.assign(held.begin(), held.begin() + result.kept);
  append(result.ids, std::span<const std::int32_t>(*fresh).subspan(new_border.tokens));
  result.reason = fmt::format("the template now writes {} where the held text goes on with {}",
                              excerpt(new_way.text, old_border.bytes), excerpt(old_way.text, old_border.bytes));
  return result;
}

}  // namespace latte
