#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "latte/error.h"

namespace latte {

/// A tokenizer.json taken apart: the two long lists as flat arrays in file order, everything else as a document.
struct TokenizerJson {
  nlohmann::json document;  ///< the file without model.vocab and model.merges
  std::vector<std::pair<std::string, std::int64_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;
  bool has_merges = false;  ///< the list is there; anything else of its name stays in the document
};

/// Reads the text of a tokenizer.json without building a tree of its 100 000s of entries. Merges come as "a b" or as
/// ["a", "b"]. Errors name `file` and the key: broken or too deep JSON, an id that is no whole number, a merge that is
/// no pair, a list given twice.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text, std::string_view file);

}  // namespace latte
