#pragma once

#include <string>
#include <vector>

#include "decode/forced_text.h"
#include "model/timeline.h"
#include "text/tokenizer.h"

namespace latte::bench {

/// The documents of a held-out file (separated by NUL), each as ids with BOS, cut to `most` tokens.
Result<std::vector<std::vector<TokenId>>> read_documents(const Tokenizer& tokenizer, const std::string& path,
                                                         std::size_t most);

}  // namespace latte::bench
