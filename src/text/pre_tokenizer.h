#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "latte/error.h"
#include "text/pattern.h"

namespace latte {

/// What becomes of the delimiter when a text is split at matches of a pattern.
enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

/// A text cut into pieces: non-empty spans of `text`, ascending. The text may have gained prefix spaces.
struct PreTokenizedText {
  std::string text;
  std::vector<TextSpan> pieces;
};

/// Spans of a text of `length` bytes split at `matches` (ascending, without overlap); empty ones are dropped.
std::vector<TextSpan> split_at_matches(std::size_t length, const std::vector<TextSpan>& matches, SplitBehavior behavior,
                                       bool invert);

/// The pre_tokenizer of a tokenizer.json: a sequence of splits that ends in ByteLevel for a byte-level vocabulary, or
/// of splits and Metaspace for one of characters. Immutable, shared between threads.
class PreTokenizer {
 public:
  /// Reads the `pre_tokenizer` entry; `byte_level` says which of the two is expected. Errors name the entry: an unknown
  /// type, a bad pattern, ByteLevel missing at the end or out of place.
  static Result<PreTokenizer> parse(const nlohmann::json& entry, bool byte_level, std::string_view file);

  /// One split that isolates the matches of a regular expression.
  static Result<PreTokenizer> isolating(std::string_view expression);

  /// Cuts a valid UTF-8 text into the pieces that BPE works on. `starts_text` says that nothing stands before it.
  Result<PreTokenizedText> split(std::string_view text, bool starts_text = true) const;

 private:
  enum class Prefix { kNever, kFirst, kAlways };
  struct Step {
    std::vector<Pattern> pattern;  // at most one; none means the text is not split
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
    Prefix prefix = Prefix::kNever;  // `space` is put before a piece that does not begin with it
    std::string space = " ";         // what spaces become
  };

  Status add(const nlohmann::json& entry, const std::string& key, std::string_view file, int depth);
  Status add_split(const nlohmann::json& entry, const std::string& key, std::string_view file);
  Status add_metaspace(const nlohmann::json& entry, const std::string& key, std::string_view file);
  Status add_byte_level(const nlohmann::json& entry, const std::string& key, std::string_view file);
  Status add_regex(std::string_view expression, SplitBehavior behavior, const std::string& key, std::string_view file);

  static void respace(const Step& step, bool starts_text, PreTokenizedText& split);

  std::vector<Step> steps_;
  bool byte_level_ = false;
};

}  // namespace latte
