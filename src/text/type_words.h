#pragma once

#include <string>
#include <string_view>

namespace latte {

/// The name of a value's type in a sentence: "an array", "a string"; null and None stand alone.
inline std::string with_article(std::string_view type) {
  if (type == "null" || type == "None") return std::string(type);
  const bool vowel = !type.empty() && std::string_view("aeiou").find(type.front()) != std::string_view::npos;
  return std::string(vowel ? "an " : "a ").append(type);
}

}  // namespace latte
