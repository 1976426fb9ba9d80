#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "text/json_text.h"
#include "text/rank_bpe.h"
#include "text/tokenizer_state.h"

namespace latte {
namespace {

// The expression that Kimi's models cut text with; a tiktoken file itself has none.
constexpr std::string_view kKimiRegex =
    R"([\p{Han}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr int kNoDigit = -1;

int base64_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return kNoDigit;
}

// The bytes of a padded base64 text; nothing when it is none.
std::optional<std::string> base64_decode(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = base64_digit(c);
    if (digit == kNoDigit) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xFFFFFF;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<char>(static_cast<unsigned char>(bits >> count)));
  }
  const std::uint32_t rest = bits & ((1u << count) - 1);
  if (rest != 0) return std::nullopt;
  return bytes;
}

struct RankLine {
  std::string token;
  std::int64_t rank = 0;
};

std::optional<RankLine> parse_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  auto token = base64_decode(line.substr(0, space));
  if (!token.has_value()) return std::nullopt;
  const std::string_view digits = line.substr(space + 1);
  RankLine result{std::move(*token), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.rank);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.starts_with('-')) return std::nullopt;
  return result;
}

// The next line without its end; `rest` is what follows.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Status read_ranks(std::string_view text, std::string_view file, RankBpe& model, TokenizerState& state) {
  std::vector<std::pair<std::string, std::int64_t>> words;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    ++number;
    if (line.empty()) continue;
    auto parsed = parse_line(line);
    if (!parsed.has_value()) {
      return fail(ErrorKind::kInvalidInput, "{}: line {} is {}, expected the base64 of a token, a space and its rank",
                  file, number, quote_for_error(line));
    }
    if (parsed->rank > kMaxTokenId) {
      return fail(ErrorKind::kInvalidInput, "{}: line {}: rank {}, expected 0 to {}", file, number, parsed->rank,
                  kMaxTokenId);
    }
    if (!model.add(parsed->token, static_cast<std::int32_t>(parsed->rank))) {
      return fail(ErrorKind::kInvalidInput, "{}: line {}: token {} has a rank already, expected each token once", file,
                  number, quote_for_error(parsed->token));
    }
    words.emplace_back(std::move(parsed->token), parsed->rank);
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char character = static_cast<char>(static_cast<unsigned char>(byte));
    if (model.contains({&character, 1})) continue;
    return fail(ErrorKind::kInvalidInput, "{}: no line of {} has the byte {:02X}, expected a token for each byte", file,
                number, byte);
  }
  return state.vocabulary.add_words(std::move(words), WordForm::kBytes, file, "ranks");
}

}  // namespace

bool looks_like_tiktoken(std::string_view text) { return parse_line(take_line(text)).has_value(); }

Result<std::shared_ptr<TokenizerState>> read_tiktoken(const TokenizerSource& source) {
  auto state = std::make_shared<TokenizerState>();
  state->file = source.file;
  auto model = std::make_unique<RankBpe>();
  if (Status read = read_ranks(source.text, source.file, *model, *state); !read.ok()) return read.error();
  auto pre_tokenizer = PreTokenizer::isolating(kKimiRegex);
  if (!pre_tokenizer.ok()) return pre_tokenizer.error();
  model->pre_tokenizer = std::move(*pre_tokenizer);
  const auto entry = source.config.find("added_tokens_decoder");
  auto tokens = parse_added_tokens_decoder(entry == source.config.end() ? nlohmann::json() : *entry, source.config_file,
                                           kMaxTokenId);
  if (!tokens.ok()) return tokens.error();
  for (AddedToken& token : *tokens) {
    token.normalized = false;
    if (token.content.size() > 1) model->remove(token.content);
  }
  state->model = std::move(model);
  if (Status added = state->add_tokens(*tokens); !added.ok()) return added.error();
  const auto sentence = read_sentence_tokens({.config = source.config,
                                              .post_processor = nlohmann::json(),
                                              .config_file = source.config_file,
                                              .tokenizer_file = source.file},
                                             state->vocabulary);
  if (!sentence.ok()) return sentence.error();
  state->sentence = *sentence;
  return state;
}

}  // namespace latte
