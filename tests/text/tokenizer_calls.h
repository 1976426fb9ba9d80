#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace latte::test {

inline std::vector<std::int32_t> encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  const auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? *ids : std::vector<std::int32_t>();
}

/// The message of a tokenizer that did not load, which must be one line, or "loaded".
inline std::string load_error(const Result<Tokenizer>& tokenizer) {
  if (tokenizer.ok()) return "loaded";
  EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos) << tokenizer.error().message;
  return tokenizer.error().message;
}

}  // namespace latte::test
